"""What a request changes is applied here and nowhere else: circuits, demotions, rows, counters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from llmgw.core.circuit import CircuitKey
from llmgw.core.eligibility import Candidate
from llmgw.core.failover import Attempt, Failover, Outcome
from llmgw.core.settle import (
    NOTHING,
    AttemptRow,
    RequestRow,
    Scope,
    Settlement,
    handoff_changes,
    settlement,
    success_changes,
)
from llmgw.core.types import AssignmentId
from llmgw.core.usage import Usage
from llmgw.observe.metrics import (
    ASSIGNMENT_REQUESTS,
    ATTEMPTS,
    HANDOFFS,
    TOKENS,
    child,
    status_label,
)
from llmgw.observe.plain import Counter
from llmgw.runtime.ports import ANYBODY, Client, RequestStore
from llmgw.runtime.router import Router
from llmgw.runtime.shared import SharedBoard

HANDOFF_WITHIN = 0.05  # seconds that a client may wait for a failure to be in the database
OPEN_AFTER = 5.0  # a request that takes longer has a row before it ends
LOOK_EVERY = 1.0


class Running(Protocol):
    """A request that has begun; `started` in unix seconds."""

    @property
    def scope(self) -> Scope: ...

    @property
    def client(self) -> Client: ...

    @property
    def started(self) -> float: ...


class _Running(NamedTuple):
    scope: Scope
    client: Client
    started: float


class SuccessCounters(NamedTuple):
    """What a success is counted in, looked up once for an assignment and a model."""

    attempts: Counter
    requests: Counter
    tokens_in: Counter
    tokens_out: Counter


def success_counters(assignment: AssignmentId, model_label: str) -> SuccessCounters:
    return SuccessCounters(
        child(ATTEMPTS, model_label, status_label(200)),
        child(ASSIGNMENT_REQUESTS, assignment, Outcome.SUCCEEDED),
        child(TOKENS, model_label, "in"),
        child(TOKENS, model_label, "out"),
    )


def _ignore(_: Settlement) -> None:
    """For a settler that nobody looks at."""


class Settler:
    """Applies settlements. Nothing is lost where a client leaves: what it waits for goes on."""

    def __init__(
        self,
        board: SharedBoard,
        router: Router,
        requests: RequestStore,
        *,
        wall: Callable[[], float],
        observe: Callable[[Settlement], None] = _ignore,
    ) -> None:
        self._board = board
        self._router = router
        self._requests = requests
        self._wall = wall
        self._observe = observe
        self._young: dict[str, Running] = {}  # without a row, in the order in which they began

    def begin(self, scope: Scope, *, started: float, client: Client = ANYBODY) -> None:
        """From here on the request is one that has to be accounted for."""
        self._young[scope.request_id] = _Running(scope, client, started)

    def begin_running(self, request_id: str, one: Running) -> None:
        """The same, for one whose scope is asked for only where it runs long."""
        self._young[request_id] = one

    def abandon(self, scope: Scope) -> None:
        """Nobody was asked: there is nothing to account for."""
        self._young.pop(scope.request_id, None)

    async def lease(self, scope: Scope, candidate: Candidate, owner: str) -> bool:
        """Take the probe slot that a candidate needs; False: another request has it."""
        return await self._board.lease(_circuit_of(scope, candidate), owner)

    async def handoff(self, scope: Scope, attempt: Attempt) -> None:
        """Before the next candidate is dispatched: others must not run into the same failure."""
        reason = attempt.verdict.reason if attempt.verdict else "unknown"
        child(HANDOFFS, reason).inc()
        written = self._board.apply(handoff_changes(scope, attempt))
        if written is not None:
            await asyncio.wait((written,), timeout=HANDOFF_WITHIN)  # cancelled, it goes on

    def settle(
        self,
        scope: Scope,
        failover: Failover,
        *,
        status: int,
        started: float,
        usage: Usage,
        model_label: str,
        client: Client = ANYBODY,
        first_event: float | None = None,
    ) -> Settlement:
        """Once per request, on every way out. Times are unix seconds."""
        self._young.pop(scope.request_id, None)
        done = settlement(
            scope,
            failover.log,
            status=status,
            started=started,
            ended=self._wall(),
            usage=usage,
            first_event=first_event,
        )
        self._board.apply(done.changes)
        self._requests.record(done, client)
        self._observe(done)
        for attempt in failover.log:
            child(ATTEMPTS, model_label, _status_label(attempt)).inc()
            outcome = attempt.outcome or Outcome.CANCELLED
            child(ASSIGNMENT_REQUESTS, attempt.candidate.assignment, outcome).inc()
            if attempt.outcome is Outcome.SUCCEEDED:
                self._router.succeeded(attempt.candidate.assignment)
        _count_tokens(usage, model_label)
        return done

    def succeed(
        self,
        request: RequestRow,
        attempt: AttemptRow,
        *,
        client: Client,
        counters: SuccessCounters,
        first_event: float | None,
    ) -> None:
        """What `settle` comes to where the one attempt, without a probe slot, got 200."""
        self._young.pop(request.request_id, None)
        if not self._board.is_blank:
            self._board.apply(success_changes(request, attempt.assignment))
        done = Settlement(NOTHING, request, (attempt,), first_event)
        self._requests.record(done, client)
        self._observe(done)
        counters.attempts.inc()
        counters.requests.inc()
        tokens_in, tokens_out, _ = request.usage
        if tokens_in:
            counters.tokens_in.inc(tokens_in)
        if tokens_out:
            counters.tokens_out.inc(tokens_out)
        self._router.succeeded(attempt.assignment)

    async def watch(self) -> None:
        """A loop: what runs long gets a row that tells of it should this process die."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.open_rows()

    def open_rows(self) -> None:
        before = self._wall() - OPEN_AFTER
        for request_id, one in tuple(self._young.items()):
            if one.started > before:
                return
            del self._young[request_id]
            self._requests.record_open(one.scope, started=one.started, client=one.client)


def _circuit_of(scope: Scope, candidate: Candidate) -> CircuitKey:
    return CircuitKey(scope.pool, candidate.assignment, scope.model, scope.lane)


def _status_label(attempt: Attempt) -> str:
    """The upstream's status, or what failed before one came."""
    if attempt.status is not None:
        return status_label(attempt.status)
    if attempt.outcome is Outcome.CANCELLED or attempt.verdict is None:
        return "cancelled"
    return attempt.verdict.reason


def _count_tokens(usage: Usage, model_label: str) -> None:
    if usage.tokens_in:
        child(TOKENS, model_label, "in").inc(usage.tokens_in)
    if usage.tokens_out:
        child(TOKENS, model_label, "out").inc(usage.tokens_out)
