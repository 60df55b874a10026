"""What a request changes is applied here and nowhere else: circuits, demotions, counters."""

from __future__ import annotations

from collections.abc import Callable

from llmgw.core.circuit import CircuitKey
from llmgw.core.eligibility import Candidate
from llmgw.core.failover import Attempt, Failover, Outcome
from llmgw.core.settle import Scope, Settlement, handoff_changes, settlement
from llmgw.core.usage import Usage
from llmgw.observe.metrics import ATTEMPTS, HANDOFFS, TOKENS, child, status_label
from llmgw.runtime.board import Board
from llmgw.runtime.router import Router


class Settler:
    """Applies settlements; never awaited by what a leaving client cancels."""

    def __init__(self, board: Board, router: Router, *, wall: Callable[[], float]) -> None:
        self._board = board
        self._router = router
        self._wall = wall

    def lease(self, scope: Scope, candidate: Candidate, owner: str) -> bool:
        """Take the probe slot that a candidate needs; False: another request has it."""
        return self._board.lease(_circuit_of(scope, candidate), owner)

    def handoff(self, scope: Scope, attempt: Attempt) -> None:
        """Before the next candidate is dispatched: others must not run into the same failure."""
        self._board.apply(handoff_changes(scope, attempt))
        reason = attempt.verdict.reason if attempt.verdict else "unknown"
        child(HANDOFFS, reason).inc()

    def settle(
        self,
        scope: Scope,
        failover: Failover,
        *,
        status: int,
        started: float,
        usage: Usage,
        model_label: str,
    ) -> Settlement:
        """Once per request, on every way out. Times are unix seconds."""
        done = settlement(
            scope,
            failover.log,
            status=status,
            started=started,
            ended=self._wall(),
            usage=usage,
        )
        self._board.apply(done.changes)
        for attempt in failover.log:
            child(ATTEMPTS, model_label, _status_label(attempt)).inc()
            if attempt.outcome is Outcome.SUCCEEDED:
                self._router.succeeded(attempt.candidate.assignment)
        _count_tokens(usage, model_label)
        return done


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
