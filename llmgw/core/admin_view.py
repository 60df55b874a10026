"""What an operator is shown of upstreams and circuits, bounded by the operator's pools.

Values in, values out. Everything here begins with the pools that exist for the operator: what
belongs to another one is never looked at, so it can be in no list, sum or count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from llmgw.core.admin_seen import UNSEEN, ErrorSeen, Sample, Sighting, total_of
from llmgw.core.admin_signals import Circuits, LaneSignal, Signal, lane_signals, signal_of
from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import Account, AdminUser, Config, Node, Pool
from llmgw.core.discovery import State
from llmgw.core.fleet import Fleet, UpstreamState
from llmgw.core.health import Status
from llmgw.core.types import AssignmentId, PoolName, RouteClass, Strategy, UpstreamName

Seat = tuple[PoolName, AssignmentId]
"""Both, since a name may hold a slash: two pools could have assignments of one id."""


class Standing(StrEnum):
    """An assignment in one word: its health as routing sees it, or what stands in its way."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DEAD = "dead"
    SKIPPED = "skipped"  # a request lost its connection: left out for some seconds
    DRAINING = "draining"
    UNCHECKED = "unchecked"  # an account, or a node whose checks are off


@dataclass(frozen=True, slots=True)
class Look:
    """All that is looked at, read once: `now` is unix time, `ticks` the monotonic clock's."""

    config: Config
    fleet: Fleet
    circuits: Mapping[CircuitKey, Circuit]
    seen: Mapping[Seat, Sighting]
    now: float
    ticks: float
    draining: AbstractSet[UpstreamName] = frozenset()


@dataclass(frozen=True, slots=True)
class CircuitCount:
    """How many circuits of an assignment are not quite closed."""

    open: int = 0
    half_open: int = 0
    failing: int = 0  # closed, and the last attempts failed


@dataclass(frozen=True, slots=True)
class AssignmentView:
    id: AssignmentId
    pool: PoolName
    name: UpstreamName
    kind: str  # "node" or "account"
    url: str
    ring: str | None
    standing: Standing
    fails: int  # health checks failed in a row
    listing: State
    listing_error: str
    models: int
    circuits: CircuitCount
    signals: tuple[LaneSignal, ...]
    samples: tuple[Sample, ...]
    errors: tuple[ErrorSeen, ...]

    @property
    def total(self) -> Sample:
        return total_of(self.samples)


@dataclass(frozen=True, slots=True)
class PoolView:
    name: PoolName
    strategy: Strategy
    assignments: tuple[AssignmentView, ...]

    @property
    def troubled(self) -> int:
        """Assignments that new requests may have to do without."""
        fine = (Standing.HEALTHY, Standing.UNCHECKED)
        return sum(one.standing not in fine or one.circuits.open > 0 for one in self.assignments)


@dataclass(frozen=True, slots=True)
class CircuitView:
    """One circuit that is not quite closed."""

    pool: PoolName
    assignment: AssignmentId
    model: str
    lane: RouteClass
    state: CircuitState
    signal: Signal
    failures: int
    openings: int
    reason: str
    due_at: float | None  # unix time: from then on a request may probe it


def visible_pools(config: Config, operator: AdminUser) -> tuple[Pool, ...]:
    """The pools that exist for the operator, in the configuration's order."""
    return tuple(pool for pool in config.pools if pool.name in operator.pools)


def upstream_view(look: Look, pools: Collection[Pool]) -> tuple[PoolView, ...]:
    circuits = circuits_by_seat(look, pools)
    return tuple(_pool(look, pool, circuits) for pool in pools)


def circuit_view(look: Look, pools: Collection[Pool]) -> tuple[CircuitView, ...]:
    """Those that stand in the way first."""
    found = [
        _circuit(look, key, circuit)
        for (pool, assignment), own in circuits_by_seat(look, pools).items()
        for key, circuit in _keyed(pool, assignment, own)
    ]
    order = tuple(Signal)
    return tuple(
        sorted(
            found, key=lambda one: (order.index(one.signal), one.assignment, one.model, one.lane)
        )
    )


def circuits_by_seat(look: Look, pools: Collection[Pool]) -> Mapping[Seat, Circuits]:
    """Of these pools' assignments and of no other; one pass, however many there are."""
    mine = {(pool.name, pool.assignment(name)) for pool in pools for name in pool.upstreams}
    found: dict[Seat, dict[tuple[str, RouteClass], Circuit]] = defaultdict(dict)
    for key, circuit in look.circuits.items():
        if (key.pool, key.assignment) in mine:
            found[key.pool, key.assignment][key.model, key.lane] = circuit
    return found


def advertised(state: UpstreamState) -> tuple[str, ...]:
    listed = state.discovery.names or ()
    own = state.upstream.models if isinstance(state.upstream, Account) else ()
    return tuple(dict.fromkeys((*own, *listed))) if own else listed


def standing_of(look: Look, state: UpstreamState) -> Standing:
    upstream = state.upstream
    if upstream.name in look.draining or (isinstance(upstream, Node) and upstream.drain):
        return Standing.DRAINING
    threshold = look.config.gateway.request_overload_threshold
    status = state.health.status(look.ticks, overload_threshold=threshold)
    if status is not Status.DEAD and state.health.is_skipped(look.ticks):
        return Standing.SKIPPED
    if status is Status.HEALTHY and (
        isinstance(upstream, Account) or upstream.health_path is None
    ):
        return Standing.UNCHECKED
    return Standing(status.value)


def _pool(look: Look, pool: Pool, circuits: Mapping[Seat, Circuits]) -> PoolView:
    members = []
    for name in pool.upstreams:
        state = look.fleet.states.get(name)
        if state is not None:  # a reload may have come between the two readings
            members.append(_assignment(look, pool, state, circuits))
    return PoolView(pool.name, pool.strategy, tuple(members))


def _assignment(
    look: Look, pool: Pool, state: UpstreamState, circuits: Mapping[Seat, Circuits]
) -> AssignmentView:
    upstream = state.upstream
    id = pool.assignment(upstream.name)
    seen = look.seen.get((pool.name, id), UNSEEN)
    models = advertised(state)
    own = circuits.get((pool.name, id), {})
    return AssignmentView(
        id=id,
        pool=pool.name,
        name=upstream.name,
        kind="account" if state.is_account else "node",
        url=str(upstream.url),
        ring=upstream.ring if isinstance(upstream, Node) else None,
        standing=standing_of(look, state),
        fails=state.health.fails,
        listing=state.discovery.state,
        listing_error=state.discovery.last_error,
        models=len(models),
        circuits=_count(own),
        signals=lane_signals(models, own, seen, now=look.now, config=look.config.circuits),
        samples=seen.samples,
        errors=seen.errors,
    )


def _count(circuits: Circuits) -> CircuitCount:
    states = [one.state for one in circuits.values()]
    return CircuitCount(
        open=states.count(CircuitState.OPEN),
        half_open=states.count(CircuitState.HALF_OPEN),
        failing=states.count(CircuitState.CLOSED),
    )


def _keyed(
    pool: PoolName, assignment: AssignmentId, circuits: Circuits
) -> Iterator[tuple[CircuitKey, Circuit]]:
    for (model, lane), circuit in circuits.items():
        yield CircuitKey(pool, assignment, model, lane), circuit


def _circuit(look: Look, key: CircuitKey, circuit: Circuit) -> CircuitView:
    config = look.config.circuits
    return CircuitView(
        pool=key.pool,
        assignment=key.assignment,
        model=key.model,
        lane=key.lane,
        state=circuit.state,
        signal=signal_of(circuit, has_served=False, now=look.now, config=config),
        failures=circuit.failures,
        openings=circuit.openings,
        reason=circuit.reason,
        due_at=circuit.open_until if circuit.state is CircuitState.OPEN else None,
    )
