"""The circuit of one (pool, assignment, model, route class), and the demotion beside it.

A row exists only while a circuit is not quite closed. Times are unix seconds that the caller
brings, since the rows are shared by the gateways of several hosts. `version` is the row's, for
compare-and-set: `advance` adds one to it with every change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, assert_never

from llmgw.core.config import CircuitsConfig
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass

OPEN_AT_MOST = 900.0
MOST_DOUBLINGS = 32  # far above OPEN_AT_MOST, and far below what a float can hold
DEMOTED_FOR = 60.0
DEMOTED_AT_MOST = 300.0


class CircuitKey(NamedTuple):
    pool: PoolName
    assignment: AssignmentId
    model: str
    lane: RouteClass


class DemotionKey(NamedTuple):
    """A demotion moves an assignment back in one key's order for one model; it never excludes."""

    pool: PoolName
    key: KeyId | None
    model: str
    assignment: AssignmentId


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Admits(StrEnum):
    """What a circuit lets through at one moment."""

    FREELY = "freely"
    PROBE = "probe"  # once a slot has been leased
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Lease:
    """A probe's slot: only its owner's completion settles it."""

    owner: str
    taken_at: float


@dataclass(frozen=True, slots=True)
class Leased:
    """An attempt asks for a probe slot as it is dispatched."""

    owner: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    owner: str | None = None  # None: the attempt was admitted by a closed circuit


@dataclass(frozen=True, slots=True)
class Failed:
    reason: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Neutral:
    """The attempt said nothing about the upstream: the client left, or it was its own fault."""

    owner: str | None = None


CircuitEvent = Leased | Succeeded | Failed | Neutral


@dataclass(frozen=True, slots=True)
class Circuit:
    """One row; the default is the row that does not exist."""

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0  # in a row, while closed
    openings: int = 0  # in a row, each twice as long as the one before
    open_until: float = 0.0
    successes: int = 0  # of probes since it was last open
    leases: tuple[Lease, ...] = ()
    reason: str = ""  # of the last failure: a code of ours
    version: int = 0

    @property
    def is_blank(self) -> bool:
        """Nothing to remember: the row is deleted."""
        return self.state is CircuitState.CLOSED and self.failures == 0

    def holds(self, owner: str) -> bool:
        return any(lease.owner == owner for lease in self.leases)

    def admits(self, now: float, config: CircuitsConfig) -> Admits:
        match self.state:
            case CircuitState.CLOSED:
                return Admits.FREELY
            case CircuitState.OPEN:
                return Admits.PROBE if now >= self.open_until else Admits.NOTHING
            case CircuitState.HALF_OPEN:
                free = len(self._live(now, config)) < config.probes
                return Admits.PROBE if free else Admits.NOTHING
            case _:
                assert_never(self.state)

    def changes_at(self, now: float, config: CircuitsConfig) -> float:
        """The next moment at which time alone changes what it admits."""
        if self.admits(now, config) is not Admits.NOTHING:
            return float("inf")
        if self.state is CircuitState.OPEN:
            return self.open_until
        return min(lease.taken_at for lease in self.leases) + config.open_for

    def _live(self, now: float, config: CircuitsConfig) -> tuple[Lease, ...]:
        """Leases that may not be taken over yet: their gateway may still be at work."""
        return tuple(one for one in self.leases if now < one.taken_at + config.open_for)


CLOSED = Circuit()


def advance(
    before: Circuit, event: CircuitEvent, *, now: float, config: CircuitsConfig
) -> Circuit:
    """`before` itself where the event changes nothing. A lease was won if the result holds it."""
    match event:
        case Leased(owner):
            after = _after_lease(before, Lease(owner, now), config)
        case Succeeded(owner):
            after = _after_success(before, owner, config)
        case Failed(reason, owner):
            after = _after_failure(before, reason, owner, now, config)
        case Neutral(owner):
            after = _settled(before, owner)
        case _:
            assert_never(event)
    unchanged = after is before or replace(after, version=before.version) == before
    return before if unchanged else replace(after, version=before.version + 1)


def demotion_for(retry_after: float | None) -> float:
    """How long a full upstream is moved back: as long as it asks, within reason."""
    return DEMOTED_FOR if retry_after is None else min(retry_after, DEMOTED_AT_MOST)


def _after_lease(before: Circuit, lease: Lease, config: CircuitsConfig) -> Circuit:
    if before.admits(lease.taken_at, config) is not Admits.PROBE or before.holds(lease.owner):
        return before
    live = before._live(lease.taken_at, config)
    return replace(before, state=CircuitState.HALF_OPEN, leases=(*live, lease))


def _after_success(before: Circuit, owner: str | None, config: CircuitsConfig) -> Circuit:
    if before.state is CircuitState.CLOSED:
        return CLOSED if owner is None else before
    if owner is None or not before.holds(owner):
        return before
    if before.successes + 1 >= config.successes:
        return CLOSED
    return replace(_settled(before, owner), successes=before.successes + 1)


def _after_failure(
    before: Circuit, reason: str, owner: str | None, now: float, config: CircuitsConfig
) -> Circuit:
    if before.state is CircuitState.CLOSED:
        if owner is not None:
            return before
        failures = before.failures + 1
        if failures < config.failure_threshold:
            return replace(before, failures=failures, reason=reason)
        return _opened(before, reason, now, config)
    if owner is None or not before.holds(owner):
        return before
    return _opened(before, reason, now, config)


def _opened(before: Circuit, reason: str, now: float, config: CircuitsConfig) -> Circuit:
    """Open, twice as long as the last time; probes still at work have lost their slots."""
    doubled = config.open_for * 2.0 ** min(before.openings, MOST_DOUBLINGS)
    wait = max(config.open_for, min(doubled, OPEN_AT_MOST))
    return Circuit(
        CircuitState.OPEN,
        openings=before.openings + 1,
        open_until=now + wait,
        reason=reason,
        version=before.version,
    )


def _settled(before: Circuit, owner: str | None) -> Circuit:
    """The slot goes back; one that is not held any more changes nothing."""
    return replace(before, leases=tuple(one for one in before.leases if one.owner != owner))
