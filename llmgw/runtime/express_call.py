"""One request that callbacks carry, until its answer is out or something has to be waited for.

What is not the plain success of its first candidate is handed over: the attempt goes on where it
is, in the loop that may try the next one (`runtime/dispatch.py`), as if it had begun there.
"""

from __future__ import annotations

import time

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.failover import Failover, Outcome
from llmgw.core.failures import MAX_CLASSIFIED_BYTES
from llmgw.core.lines import AnswerForm, AnswerKind
from llmgw.core.plan import RoutePlan, led_by
from llmgw.core.settle import AttemptRow, RequestRow, Scope, scope_of
from llmgw.core.types import AssignmentId
from llmgw.core.usage import Usage
from llmgw.observe.metrics import IN_FLIGHT, OPEN_STREAMS, TIME_TO_HEADERS
from llmgw.runtime.answer import Errand, Served
from llmgw.runtime.asked import Asked
from llmgw.runtime.attempt import Begun, GoOn
from llmgw.runtime.buffered import usage_of_success
from llmgw.runtime.dispatch import Dispatch
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.journey import Journey, Stage, spent
from llmgw.runtime.lanes import Lane, Seat
from llmgw.runtime.ports import Client, OpenExchange
from llmgw.runtime.splice import ClientStalled, Splice
from llmgw.runtime.streaming import StreamRelay
from llmgw.runtime.way import HTTP, Way

OK = 200
MOST_UNREAD = MAX_CLASSIFIED_BYTES  # of a document: a longer one is not judged whole


class ExpressCall:
    """Ends by telling its host once, or goes on in `go_on`."""

    # what most calls never set stands in the class
    errand: Errand | None = None
    overhead = 0.0  # seconds
    _form: AnswerForm | None = None  # None: the head has not come
    _relay: StreamRelay | None = None
    _splice: Splice | None = None

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
        self.label = lane.label  # of the model, in metrics
        self._seat = seat
        self._exchange = exchange
        self._turn = turn
        self._plan = plan
        tools = gateway.errands.tools
        self._began = now = tools.clock()
        self.started = tools.wall()
        lane.budget.request(now)
        IN_FLIGHT.inc()
        seat.entry.in_flight += 1
        seat.entry.watchers.add(self)
        seat.running.inc()
        gateway.settler.begin_running(asked.call.request_id, self)
        if asked.call.stream:  # the wait for its first event is looked after from its beginning
            self.errand = self._make_errand()
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
            form = self._lane.forms.of(head.headers, from_account=seat.candidate.is_account)
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
        usage = (
            None
            if asked.downstream.committed
            else usage_of_success(form.kind, body, asked.call.route.dialect)
        )
        if usage is None:
            self._hand_over()
            return
        self._exchange.listen(None)
        self._release()
        if self.errand is not None:
            self._attempted().seen()
        self.overhead += spent(Stage.ANSWER, time.perf_counter() - began)
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
        plan = led_by(plan, self._seat.candidate)  # it may have been demoted meanwhile
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
        self._asked.hand_over()

    def _release(self) -> None:
        """As far as this way counts, nothing of it runs at the upstream any more."""
        seat = self._seat
        seat.entry.watchers.discard(self)
        seat.entry.in_flight -= 1
        seat.running.dec()

    def _settle(self, usage: Usage, first_event: float | None) -> None:
        """One attempt, and it served."""
        gateway, seat, lane = self._gateway, self._seat, self._lane
        call, principal = self._asked.call, self._asked.principal
        if seat.entry.state.health.streak:
            gateway.errands.watch.answered(seat.candidate.upstream, OK)
        started, ended = self.started, gateway.errands.tools.wall()
        id, served, assignment = call.request_id, Outcome.SUCCEEDED, seat.candidate.assignment
        gateway.settler.succeed(
            RequestRow(
                id,
                principal.pool,
                principal.key,
                call.model,
                lane.route_class,
                call.route.path,
                call.stream,
                served,
                OK,
                0,
                started,
                ended,
                usage,
            ),
            AttemptRow(id, 1, assignment, served, None, OK, started, ended),
            client=self._asked.client,
            counters=seat.success,
            first_event=first_event,
        )

    def _end(self) -> None:
        IN_FLIGHT.dec()
        self._asked.over()
