"""One request that callbacks carry, until its answer is out or something has to be waited for.

What is not the plain success of its first candidate is handed over: the attempt goes on where it
is, in the loop that may try the next one (`runtime/dispatch.py`), as if it had begun there.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

from llmgw.core import document
from llmgw.core.config import Upstream
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.failover import Failover, Outcome
from llmgw.core.failures import MAX_CLASSIFIED_BYTES, find_error
from llmgw.core.lines import AnswerForm, AnswerKind, form_of
from llmgw.core.plan import RoutePlan
from llmgw.core.policy import Principal
from llmgw.core.settle import AttemptRow, RequestRow, Scope, scope_of
from llmgw.core.types import AssignmentId
from llmgw.core.usage import Usage, usage_of_answer, usage_of_body
from llmgw.core.wire import Call
from llmgw.observe.metrics import IN_FLIGHT, OPEN_STREAMS, TIME_TO_HEADERS
from llmgw.runtime.answer import Errand, Served
from llmgw.runtime.attempt import Begun, GoOn
from llmgw.runtime.dispatch import Dispatch
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.journey import Journey, Stage, observe
from llmgw.runtime.lanes import Lane, Seat
from llmgw.runtime.ports import Client, LineDownstream, OpenExchange
from llmgw.runtime.splice import ClientStalled, Splice
from llmgw.runtime.streaming import StreamRelay
from llmgw.runtime.way import HTTP, Way

OK = 200
MOST_UNREAD = MAX_CLASSIFIED_BYTES  # of a document: a longer one is not judged whole


class Host(Protocol):
    """Whose request it is."""

    def over(self) -> None:
        """The answer is out, as far as it goes."""

    def hand_over(self) -> None:
        """See to it that `ExpressCall.go_on` is awaited, or `leave` called."""


class Sent(NamedTuple):
    """The head of a request as an upstream got it, without what is each request's own."""

    upstream: Upstream
    parts: list[bytes]  # the request's id stands between them

    def head(self, request_id: str, length: int) -> bytes:
        rest = request_id.encode().join(self.parts)
        return b"%b\r\ncontent-length: %d\r\n\r\n" % (rest, length)


class Asked(NamedTuple):
    """A request with whoever waits for its answer."""

    call: Call
    principal: Principal
    client: Client
    downstream: LineDownstream
    host: Host
    memo: dict[AssignmentId, Sent]  # of requests that had the same head


class ExpressCall:
    """Ends by telling its host once, or goes on in `go_on`."""

    __slots__ = (
        "_asked",
        "_began",
        "_exchange",
        "_form",
        "_gateway",
        "_lane",
        "_plan",
        "_relay",
        "_seat",
        "_splice",
        "_turn",
        "errand",
        "overhead",
        "started",
    )

    def __init__(
        self,
        gateway: Gateway,
        asked: Asked,
        lane: Lane,
        seat: Seat,
        exchange: OpenExchange,
        turn: int,
        plan: RoutePlan | None,
    ) -> None:
        self._gateway = gateway
        self._asked = asked
        self._lane = lane
        self._seat = seat
        self._exchange = exchange
        self._turn = turn
        self._plan = plan
        self._form: AnswerForm | None = None  # None: the head has not come
        self._relay: StreamRelay | None = None
        self._splice: Splice | None = None
        tools = gateway.errands.tools
        self._began = now = tools.clock()
        self.started = tools.wall()
        self.overhead = 0.0  # seconds
        lane.budget.request(now)
        IN_FLIGHT.inc()
        seat.entry.in_flight += 1
        seat.entry.watchers.add(self)
        seat.running.inc()
        gateway.settler.begin_running(asked.call.request_id, self)
        # a stream's wait for its first event is looked after from its beginning
        self.errand: Errand | None = self._make_errand() if asked.call.stream else None
        exchange.listen(self._moved)
        if exchange.fault is not None:
            self._hand_over()

    # --- what others ask of it

    @property
    def scope(self) -> Scope:
        asked = self._asked
        return scope_of(asked.call, pool=asked.principal.pool, key=asked.principal.key)

    @property
    def client(self) -> Client:
        return self._asked.client

    @property
    def label(self) -> str:
        return self._lane.label

    @property
    def assignment(self) -> AssignmentId:
        return self._seat.candidate.assignment

    def tell(self) -> None:
        """The node is dead: TCP may take minutes to find out."""
        self._exchange.fail(UpstreamError(FaultKind.DEAD))

    def leave(self) -> None:
        """The client has left."""
        self._exchange.listen(None)
        if self._splice is not None:
            self._splice.let_go()
            OPEN_STREAMS.dec()
        self._exchange.abort()
        self._release()
        self._conclusion().left()
        IN_FLIGHT.dec()

    async def go_on(self) -> None:
        """As `Gateway.serve` does. Raises `GatewayError` while the client has seen nothing."""
        try:
            self._release()
            way = Way(attempt=GoOn(Begun(self._exchange, self._relay)))
            if not await self._dispatch(way).run():
                raise self._gateway.router.refusal(self._lane.snapshot, self._lane.eligibility)
        finally:
            IN_FLIGHT.dec()

    # --- the exchange's side

    def _moved(self) -> None:
        exchange = self._exchange
        if exchange.fault is not None:
            self._hand_over()
            return
        form = self._form
        if form is None:
            if not exchange.has_head:
                return
            form = self._begin_answer()
            if form is None:
                self._hand_over()
                return
        if self._relay is not None:
            self._withhold(self._relay)
        elif exchange.ended:
            self._answer(form, exchange.peek())
        elif exchange.unread > MOST_UNREAD:
            self._hand_over()

    def _begin_answer(self) -> AnswerForm | None:
        """The head has come; None: it is not the usual one."""
        exchange, seat, tools = self._exchange, self._seat, self._gateway.errands.tools
        seat.entry.watchers.discard(self)
        TIME_TO_HEADERS.observe(tools.clock() - self._began)
        head = exchange.head
        if head.status != OK:
            return None
        try:
            form = form_of(head.headers, from_account=seat.candidate.is_account)
        except ValueError:  # a line that can't be passed on
            return None
        if form.kind is AnswerKind.ENCODED:
            return None
        if form.kind is AnswerKind.EVENTS:
            if self.errand is None:
                self.errand = self._make_errand()
            self._relay = StreamRelay(tools, self.errand, seat.candidate, exchange)
        self._form = form
        return form

    def _answer(self, form: AnswerForm, body: bytes) -> None:
        """A whole document, which is handed over where it may be no success."""
        began = time.perf_counter()
        asked = self._asked
        usage = None if asked.downstream.committed else _usage_of(form, body, asked.call)
        if usage is None:
            self._hand_over()
            return
        self._release()
        if self.errand is not None:
            self.errand.seen()
        self.overhead += observe(Stage.ANSWER, began)
        asked.downstream.respond(OK, form.lines, body)
        self._settle(usage, None)
        self._end()

    def _withhold(self, relay: StreamRelay) -> None:
        exchange = self._exchange
        if data := exchange.take():
            relay.offer(data)
        if exchange.ended and not relay.is_decided:
            relay.offer(b"")
        if not relay.is_decided:
            return
        if not relay.is_shown:
            self._hand_over()
            return
        exchange.listen(None)
        self._attempted()
        released = relay.show()
        self._splice = relay.splice()
        self._splice.start(released, self._stream_ended)

    def _stream_ended(self, what: UpstreamError | ClientStalled | None) -> None:
        if self._splice is None or self._relay is None or self.errand is None:
            return
        self._splice.let_go()
        OPEN_STREAMS.dec()
        self._release()
        if isinstance(what, ClientStalled):
            self._conclusion().left(stalled=True)
        else:
            result = self._relay.conclude(what)
            if isinstance(result, Served) and result.fault is None:
                self._settle(result.usage, self.errand.journey.first_event)
            else:
                self._conclusion().served(self._seat.candidate, result)
        self._end()

    # --- inside

    def _make_errand(self) -> Errand:
        asked = self._asked
        return self._gateway.errands.make(
            asked.call,
            asked.principal,
            asked.downstream,
            Journey(),
            config=self._lane.snapshot.config,
        )

    def _attempted(self) -> Errand:
        """The errand, with this attempt on its journey."""
        errand = self.errand = self.errand or self._make_errand()
        if not errand.journey.attempts:
            errand.journey.attempt(self.assignment, now=self._began)
        return errand

    def _conclusion(self) -> Dispatch:
        """For the ends that `_settle` does not know."""
        self._attempted()
        return self._dispatch(HTTP)

    def _dispatch(self, way: Way) -> Dispatch:
        """What takes it from here, with the plan that it began with."""
        gateway, lane, asked = self._gateway, self._lane, self._asked
        plan = self._plan or gateway.router.plan(
            lane.snapshot, lane.eligibility, asked.call, asked.principal, turn=self._turn
        )
        errand = self.errand = self.errand or self._make_errand()
        return Dispatch(
            gateway.errands.context(asked.call, asked.principal),
            errand,
            Failover(plan),
            way,
            started=self.started,
        )

    def _hand_over(self) -> None:
        self._exchange.listen(None)
        self._asked.host.hand_over()

    def _release(self) -> None:
        """As far as this way counts, nothing of it runs at the upstream any more."""
        seat = self._seat
        seat.entry.watchers.discard(self)
        seat.entry.in_flight -= 1
        seat.running.dec()

    def _settle(self, usage: Usage, first_event: float | None) -> None:
        """One attempt, and it served."""
        gateway, candidate = self._gateway, self._seat.candidate
        call, principal = self._asked.call, self._asked.principal
        gateway.errands.watch.answered(candidate.upstream, OK)
        started, ended = self.started, gateway.errands.tools.wall()
        served, id = Outcome.SUCCEEDED, call.request_id
        gateway.settler.succeed(
            RequestRow(
                id,
                principal.pool,
                principal.key,
                call.model,
                call.lane,
                call.route.path,
                call.stream,
                served,
                OK,
                0,
                started,
                ended,
                usage,
            ),
            AttemptRow(id, 1, candidate.assignment, served, None, OK, started, ended),
            client=self._asked.client,
            model_label=self._lane.label,
            first_event=first_event,
        )

    def _end(self) -> None:
        IN_FLIGHT.dec()
        self._asked.host.over()


def _usage_of(form: AnswerForm, body: bytes, call: Call) -> Usage | None:
    """What a document tells of tokens; None: it is not, or not surely, a success."""
    if len(body) > MOST_UNREAD:
        return None
    if form.kind is not AnswerKind.JSON:
        return usage_of_body(body, call.route.dialect)
    answer = document.parse(body)
    if answer is None or find_error(answer) is not None:
        return None
    return usage_of_answer(answer, body, call.route.dialect)
