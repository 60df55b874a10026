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
        raise NotImplementedError

    def changes_at(self, now: float, config: CircuitsConfig) -> float:
        """The next moment at which time alone changes what it admits."""
        raise NotImplementedError


CLOSED = Circuit()


def advance(
    before: Circuit, event: CircuitEvent, *, now: float, config: CircuitsConfig
) -> Circuit:
    """`before` itself where the event changes nothing. A lease was won if the result `holds` it."""
    raise NotImplementedError
