"""What a finished request changes: circuits, demotions, and the rows that are kept of it."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.circuit import CircuitEvent, CircuitKey, DemotionKey
from llmgw.core.failover import Attempt, Outcome
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.core.usage import Usage as Usage
from llmgw.core.wire import Call


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose request it was."""

    request_id: str
    pool: PoolName
    key: KeyId | None
    model: str
    lane: RouteClass
    route: str
    stream: bool


@dataclass(frozen=True, slots=True)
class Demote:
    key: DemotionKey
    for_seconds: float | None  # None: a success ended it


@dataclass(frozen=True, slots=True)
class Changes:
    circuits: tuple[tuple[CircuitKey, CircuitEvent], ...] = ()
    demotions: tuple[Demote, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptRow:
    request_id: str
    ordinal: int
    assignment: AssignmentId
    outcome: Outcome
    reason: str | None
    status: int | None
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class RequestRow:
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
    usage: Usage = Usage()  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class Settlement:
    changes: Changes
    request: RequestRow
    attempts: tuple[AttemptRow, ...]


def scope_of(call: Call, *, pool: PoolName, key: KeyId | None) -> Scope:
    raise NotImplementedError


def handoff_changes(scope: Scope, attempt: Attempt) -> Changes:
    """What is applied before the handoff: in the view at once, and handed to the writer."""
    raise NotImplementedError


def settlement(
    scope: Scope,
    log: tuple[Attempt, ...],
    *,
    status: int,
    started: float,
    ended: float,
    usage: Usage = Usage(),  # noqa: B008
) -> Settlement:
    """The rest, once: also of a request whose client has left."""
    raise NotImplementedError
