"""What a finished request changes: circuits, demotions, and the rows that are kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from llmgw.core.circuit import (
    CircuitEvent,
    CircuitKey,
    DemotionKey,
    Failed,
    Neutral,
    Succeeded,
)
from llmgw.core.classify import Effect, Verdict
from llmgw.core.failover import Attempt, Outcome
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.core.wire import Call

CLIENT_LEFT = 499  # the status of a request that nobody waited for, as nginx has it


class Scope(NamedTuple):
    """Whose request it was."""

    request_id: str
    pool: PoolName
    key: KeyId | None
    model: str
    lane: RouteClass
    route: str
    stream: bool


class Demote(NamedTuple):
    key: DemotionKey
    for_seconds: float | None  # None: a success ended it


@dataclass(frozen=True, slots=True)
class Changes:
    circuits: tuple[tuple[CircuitKey, CircuitEvent], ...] = ()
    demotions: tuple[Demote, ...] = ()

    def __add__(self, more: Changes) -> Changes:
        if self is NOTHING:
            return more
        return Changes(self.circuits + more.circuits, self.demotions + more.demotions)


NOTHING = Changes()
ADMITTED_FREELY = Succeeded()


class AttemptRow(NamedTuple):
    """Times are unix seconds."""

    request_id: str
    ordinal: int
    assignment: AssignmentId
    outcome: Outcome
    reason: str | None
    status: int | None
    started: float
    ended: float


class RequestRow(NamedTuple):
    """Times are unix seconds; `retry_count` is the number of handoffs that were dispatched."""

    request_id: str
    pool: PoolName
    key: KeyId | None
    model: str
    lane: RouteClass
    route: str
    stream: bool
    outcome: Outcome
    status: int
    retry_count: int
    started: float
    ended: float
    usage: Usage = UNKNOWN


class Settlement(NamedTuple):
    changes: Changes
    request: RequestRow
    attempts: tuple[AttemptRow, ...]
    first_event: float | None = None  # seconds from the request to the stream's first visible one


def scope_of(call: Call, *, pool: PoolName, key: KeyId | None) -> Scope:
    return Scope(
        request_id=call.request_id,
        pool=pool,
        key=key,
        model=call.model,
        lane=call.lane,
        route=call.route.path,
        stream=call.stream,
    )


def handoff_changes(scope: Scope, attempt: Attempt) -> Changes:
    """What is applied before the handoff: in the view at once, and handed to the writer.

    Where only a later success makes it a failure, nothing yet: a probe's slot is kept till then.
    """
    verdict = attempt.verdict
    if verdict is None or verdict.effect is Effect.FAILURE_IF_SERVED:
        return NOTHING
    return _changes_of_failure(scope, attempt, verdict, served=False)


def settlement(
    scope: Scope,
    log: tuple[Attempt, ...],
    *,
    status: int,
    started: float,
    ended: float,
    usage: Usage = UNKNOWN,
    first_event: float | None = None,
) -> Settlement:
    """What the handoffs have not applied yet, and the rows. Once for each request, also of one
    whose client has left; `log` is not empty.
    """
    changes = NOTHING
    served = log[-1].outcome is Outcome.SUCCEEDED
    for attempt in log:
        changes += _changes_at_end(scope, attempt, served=served)
    return Settlement(
        changes,
        _request_row(scope, log, status, started, ended, usage),
        tuple(_attempt_row(scope, attempt, ended) for attempt in log),
        first_event,
    )


def success_changes(request: RequestRow, assignment: AssignmentId) -> Changes:
    """Of an assignment that served and held no probe slot."""
    circuit = CircuitKey(request.pool, assignment, request.model, request.lane)
    demotion = DemotionKey(request.pool, request.key, request.model, assignment)
    return Changes(((circuit, ADMITTED_FREELY),), (Demote(demotion, None),))


def _changes_at_end(scope: Scope, attempt: Attempt, *, served: bool) -> Changes:
    verdict = attempt.verdict
    if attempt.outcome is Outcome.SUCCEEDED:
        event = ADMITTED_FREELY if attempt.owner is None else Succeeded(attempt.owner)
        return Changes(
            ((_circuit(scope, attempt), event),),
            (Demote(_demotion(scope, attempt), None),),
        )
    if verdict is None:  # the client left while it ran
        return _given_back(scope, attempt)
    if attempt.handed_on and verdict.effect is not Effect.FAILURE_IF_SERVED:
        return NOTHING
    return _changes_of_failure(scope, attempt, verdict, served=served)


def _changes_of_failure(
    scope: Scope, attempt: Attempt, verdict: Verdict, *, served: bool
) -> Changes:
    if verdict.effect is Effect.NONE or (
        verdict.effect is Effect.FAILURE_IF_SERVED and not served
    ):
        return _given_back(scope, attempt)
    demotion = Changes(demotions=(Demote(_demotion(scope, attempt), verdict.demote_for),))
    if verdict.effect is Effect.DEMOTION:
        return _given_back(scope, attempt) + demotion
    failed = Failed(verdict.reason, attempt.owner)
    return Changes(((_circuit(scope, attempt), failed),)) + demotion


def _given_back(scope: Scope, attempt: Attempt) -> Changes:
    """It said nothing about the circuit: a probe's slot is free again."""
    if attempt.owner is None:
        return NOTHING
    return Changes(((_circuit(scope, attempt), Neutral(attempt.owner)),))


def _circuit(scope: Scope, attempt: Attempt) -> CircuitKey:
    return CircuitKey(scope.pool, attempt.candidate.assignment, scope.model, scope.lane)


def _demotion(scope: Scope, attempt: Attempt) -> DemotionKey:
    return DemotionKey(scope.pool, scope.key, scope.model, attempt.candidate.assignment)


def _request_row(
    scope: Scope,
    log: tuple[Attempt, ...],
    status: int,
    started: float,
    ended: float,
    usage: Usage,
) -> RequestRow:
    return RequestRow(
        request_id=scope.request_id,
        pool=scope.pool,
        key=scope.key,
        model=scope.model,
        lane=scope.lane,
        route=scope.route,
        stream=scope.stream,
        outcome=_outcome_of_request(log[-1], status),
        status=status,
        retry_count=sum(one.outcome is Outcome.RETRYABLE_FAILED for one in log),
        started=started,
        ended=ended,
        usage=usage,
    )


def _outcome_of_request(last: Attempt, status: int) -> Outcome:
    """A client that leaves between two attempts leaves a failed one behind, and no answer."""
    left_between = last.handed_on and status == CLIENT_LEFT
    return Outcome.CANCELLED if left_between else last.outcome or Outcome.CANCELLED


def _attempt_row(scope: Scope, attempt: Attempt, ended: float) -> AttemptRow:
    return AttemptRow(
        request_id=scope.request_id,
        ordinal=attempt.ordinal,
        assignment=attempt.candidate.assignment,
        outcome=attempt.outcome or Outcome.CANCELLED,
        reason=attempt.verdict.reason if attempt.verdict else None,
        status=attempt.status,
        started=attempt.started,
        ended=ended if attempt.ended is None else attempt.ended,
    )
