"""Which assignments of a pool can serve a request now, and why the others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from llmgw.core.affinity import Ring
from llmgw.core.catalog import Catalog
from llmgw.core.circuit import CLOSED, Admits, Circuit, CircuitKey
from llmgw.core.config import Account, CircuitsConfig, Node, Upstream
from llmgw.core.errors import GatewayError, NotFound, Unavailable
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import Status
from llmgw.core.types import (
    AssignmentId,
    Headers,
    PoolName,
    Provenance,
    RouteClass,
    UpstreamName,
)

NEVER = float("inf")
RETRY_AFTER = 5.0  # seconds: by then a check or a listing may have changed the answer
RETRY_AFTER_AT_MOST = 60.0


class Exclusion(StrEnum):
    """In the order in which they are looked for."""

    RING = "ring"
    MISSING = "missing"
    EMPTY = "empty"
    EXPIRED = "expired"
    DEAD = "dead"
    SKIPPED = "skipped"
    CIRCUIT_OPEN = "circuit_open"
    CAPABILITY = "capability"
    DRAINING = "draining"
    PINNED = "pinned"


NOT_WORTH_RETRYING = frozenset({Exclusion.RING, Exclusion.MISSING, Exclusion.EMPTY})
ENDS_BY_ITSELF = frozenset({Exclusion.SKIPPED, Exclusion.CIRCUIT_OPEN})


class Ask(NamedTuple):
    """All of a request that eligibility depends on."""

    pool: PoolName
    model: str | None  # None: the route goes where an id lives, whatever serves there
    route: str  # its path
    lane: RouteClass
    ring: str | None = None  # of the model, by configuration
    pin: AssignmentId | None = None
    websocket: bool = False  # only an upstream that takes websockets will do


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assignment that may be tried."""

    assignment: AssignmentId
    upstream: Upstream
    provenance: Provenance | None = None
    degraded: bool = False
    untried: bool = False
    probe: bool = False  # its circuit wants a lease first

    @property
    def is_account(self) -> bool:
        return isinstance(self.upstream, Account)


class Tier:
    """Candidates that only affinity and strategy tell apart."""

    __slots__ = ("_ring", "members")

    def __init__(self, members: tuple[Candidate, ...]) -> None:
        self.members = members
        self._ring: Ring[Candidate] | None = None

    @property
    def ring(self) -> Ring[Candidate]:
        if self._ring is None:
            self._ring = Ring((one.assignment, one) for one in self.members)
        return self._ring


Tiers = tuple[tuple[Tier, Tier], tuple[Tier, Tier]]


class _Derived:
    """What has been computed of an eligibility. Not by `cached_property`: in a compiled class,
    whose instances have no `__dict__`, that is a property which caches nothing.
    """

    __slots__ = ("excluded", "tiers")

    def __init__(self) -> None:
        self.excluded: Mapping[Exclusion, int] | None = None
        self.tiers: Tiers | None = None


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Valid until an input changes or `valid_until` (monotonic), so it may be kept and shared:
    what is derived from it is computed once.
    """

    ask: Ask
    candidates: tuple[Candidate, ...]
    reasons: Mapping[AssignmentId, Exclusion] = field(default_factory=dict)
    valid_until: float = NEVER
    _derived: _Derived = field(default_factory=_Derived, init=False, repr=False, compare=False)

    @property
    def tiers(self) -> Tiers:
        """Of the healthy and of the degraded ones: those that advertise the model, the untried."""
        derived = self._derived
        if derived.tiers is None:
            derived.tiers = self._tiers(degraded=False), self._tiers(degraded=True)
        return derived.tiers

    @property
    def excluded(self) -> Mapping[Exclusion, int]:
        """How many fell for which reason, in the order in which reasons are looked for."""
        derived = self._derived
        if derived.excluded is None:
            derived.excluded = _count(self.reasons)
        return derived.excluded

    def _tiers(self, *, degraded: bool) -> tuple[Tier, Tier]:
        members = [one for one in self.candidates if one.degraded is degraded]
        advertising = tuple(one for one in members if not one.untried)
        return Tier(advertising), Tier(tuple(one for one in members if one.untried))


def select_eligible(
    ask: Ask,
    assignments: Sequence[tuple[AssignmentId, UpstreamState]],
    circuits: Mapping[CircuitKey, Circuit],
    *,
    now: float,
    wall: float,
    overload_threshold: int,
    config: CircuitsConfig,
    draining: AbstractSet[UpstreamName] = frozenset(),
) -> Eligibility:
    """Filter in the order of `Exclusion`. `now` is monotonic, `wall` unix time.

    Skip-listed ones serve when nothing else is left; for a hard pin the skip list does not count.
    """
    sieve = _Sieve(ask, circuits, now, wall, overload_threshold, config, draining)
    reasons: dict[AssignmentId, Exclusion] = {}
    candidates: list[Candidate] = []
    spare: list[Candidate] = []
    for assignment, state in assignments:
        reason = sieve.reason(assignment, state)
        if reason is None:
            candidates.append(sieve.candidate(assignment, state))
            continue
        reasons[assignment] = reason
        if reason is Exclusion.SKIPPED and sieve.later_reason(assignment, state) is None:
            spare.append(sieve.candidate(assignment, state))
    if spare and not candidates:
        candidates = spare
        for one in spare:
            del reasons[one.assignment]
    changes = (sieve.changes_at(assignment, state) for assignment, state in assignments)
    return Eligibility(ask, tuple(candidates), reasons, min(changes, default=NEVER))


def refusal(eligibility: Eligibility, catalog: Catalog, *, now: float) -> GatewayError:
    """The answer where nobody serves: nothing is eligible, or all probe leases were lost."""
    ask = eligibility.ask
    lost = {one.assignment: Exclusion.CIRCUIT_OPEN for one in eligibility.candidates}
    reasons = {**eligibility.reasons, **lost}
    if ask.pin is not None:
        return Unavailable(
            "the assignment that this request continues on is not available",
            code="pinned_assignment_unavailable",
            headers=_hints({one for at, one in reasons.items() if at == ask.pin}, eligibility, now)
            + _told(reasons),
        )
    if ask.model is not None and _is_unknown(ask.model, catalog):
        return NotFound("this model does not exist here", code="model_not_found", param="model")
    return Unavailable(
        "no healthy node available",
        param="model",
        headers=_hints(set(reasons.values()), eligibility, now) + _told(reasons),
    )


@dataclass(frozen=True, slots=True)
class _Sieve:
    """The filters, for one ask at one moment."""

    ask: Ask
    circuits: Mapping[CircuitKey, Circuit]
    now: float
    wall: float
    overload_threshold: int
    config: CircuitsConfig
    draining: AbstractSet[UpstreamName]

    def reason(self, assignment: AssignmentId, state: UpstreamState) -> Exclusion | None:
        """The first filter that it does not pass."""
        if self.ask.model is not None:
            if _ring_of(state.upstream) != self.ask.ring:
                return Exclusion.RING
            if (missed := self._model_reason(self.ask.model, state)) is not None:
                return missed
        if self._status(state) is Status.DEAD:
            return Exclusion.DEAD
        if self.ask.pin is None and state.health.is_skipped(self.now):
            return Exclusion.SKIPPED
        return self.later_reason(assignment, state)

    def later_reason(self, assignment: AssignmentId, state: UpstreamState) -> Exclusion | None:
        """The same, from behind the skip list on."""
        upstream = state.upstream
        if self._circuit(assignment).admits(self.wall, self.config) is Admits.NOTHING:
            return Exclusion.CIRCUIT_OPEN
        if upstream.routes is not None and self.ask.route not in upstream.routes:
            return Exclusion.CAPABILITY
        if self.ask.websocket and upstream.websocket is False:
            return Exclusion.CAPABILITY
        if upstream.name in self.draining or (isinstance(upstream, Node) and upstream.drain):
            return Exclusion.DRAINING
        return None if self.ask.pin in (None, assignment) else Exclusion.PINNED

    def candidate(self, assignment: AssignmentId, state: UpstreamState) -> Candidate:
        model = self.ask.model
        provenance = None if model is None else state.provenance(model)
        return Candidate(
            assignment,
            state.upstream,
            provenance,
            degraded=self._status(state) is Status.DEGRADED,
            untried=model is not None and provenance is None,
            probe=self._circuit(assignment).admits(self.wall, self.config) is Admits.PROBE,
        )

    def changes_at(self, assignment: AssignmentId, state: UpstreamState) -> float:
        """When time alone changes one of these answers, by the monotonic clock."""
        circuit = self._circuit(assignment).changes_at(self.wall, self.config)
        return min(state.health.changes_at(self.now), self.now + circuit - self.wall)

    def _model_reason(self, model: str, state: UpstreamState) -> Exclusion | None:
        if isinstance(state.upstream, Account) and model in state.upstream.models:
            return None
        missed = state.discovery.exclusion(model, is_account=state.is_account)
        return None if missed is None else Exclusion(missed.value)

    def _status(self, state: UpstreamState) -> Status:
        return state.health.status(self.now, overload_threshold=self.overload_threshold)

    def _circuit(self, assignment: AssignmentId) -> Circuit:
        if not self.circuits:
            return CLOSED
        ask = self.ask
        key = CircuitKey(ask.pool, assignment, ask.model or "", ask.lane)
        return self.circuits.get(key, CLOSED)


def _ring_of(upstream: Upstream) -> str | None:
    return upstream.ring if isinstance(upstream, Node) else None


def _is_unknown(model: str, catalog: Catalog) -> bool:
    """A pool of accounts alone knows what it has, once each has told."""
    settled = catalog.only_accounts and not catalog.has_untried
    return settled and not catalog.knows(model)


def _hints(reasons: set[Exclusion], eligibility: Eligibility, now: float) -> Headers:
    """Whether to come back, and when: waiting brings no model to where it is not."""
    if reasons <= NOT_WORTH_RETRYING:
        return (("x-should-retry", "false"),)
    wait = RETRY_AFTER_AT_MOST if reasons <= ENDS_BY_ITSELF else RETRY_AFTER
    wait = min(eligibility.valid_until - now, wait)
    return (("retry-after", str(max(ceil(wait), 1))),)


def _told(reasons: Mapping[AssignmentId, Exclusion]) -> Headers:
    counts = ", ".join(f"{reason}={count}" for reason, count in _count(reasons).items())
    return (("x-llmgw-excluded", counts),) if counts else ()


def _count(reasons: Mapping[AssignmentId, Exclusion]) -> Mapping[Exclusion, int]:
    counts = Counter(reasons.values())
    return {reason: counts[reason] for reason in Exclusion if counts[reason]}
