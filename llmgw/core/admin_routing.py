"""The routing panel of one assignment: its models, what it can do, and whether it serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llmgw.core.admin_capabilities import Capability, capabilities_of
from llmgw.core.admin_seen import UNSEEN, Sighting
from llmgw.core.admin_signals import (
    LANES,
    Circuits,
    LaneSignal,
    Signal,
    lane_signals,
    model_signal,
)
from llmgw.core.admin_view import Look, advertised, circuits_by_seat
from llmgw.core.config import Pool
from llmgw.core.discovery import State
from llmgw.core.fleet import UpstreamState
from llmgw.core.types import AssignmentId, PoolName, Provenance, UpstreamName


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model id, as the upstream spells it. `provenance` None: it was served, or failed,
    without being advertised.
    """

    id: str
    provenance: Provenance | None
    max_model_len: int | None
    http: Signal
    sse: Signal
    websocket: Signal


@dataclass(frozen=True, slots=True)
class RoutingView:
    assignment: AssignmentId
    pool: PoolName
    name: UpstreamName
    listing: State
    listed_ago: float | None  # seconds since the last listing that was read
    listing_fails: int
    listing_error: str
    signals: tuple[LaneSignal, ...]
    capabilities: tuple[Capability, ...]
    models: tuple[ModelView, ...]


def find_seat(pools: Iterable[Pool], id: str) -> tuple[Pool, UpstreamName] | None:
    """The assignment of that id in one of these pools; None: it does not exist for the operator,
    or at all.
    """
    for pool in pools:
        for name in pool.upstreams:
            if pool.assignment(name) == id:
                return pool, name
    return None


def routing_view(look: Look, pool: Pool, name: UpstreamName) -> RoutingView | None:
    """None where a reload has just taken the upstream away."""
    state = look.fleet.states.get(name)
    if state is None:
        return None
    seat = pool.name, pool.assignment(name)
    seen = look.seen.get(seat, UNSEEN)
    circuits = circuits_by_seat(look, (pool,)).get(seat, {})
    listing = state.discovery
    return RoutingView(
        assignment=seat[1],
        pool=pool.name,
        name=name,
        listing=listing.state,
        listed_ago=None if listing.listed_at is None else max(0.0, look.ticks - listing.listed_at),
        listing_fails=listing.fails,
        listing_error=listing.last_error,
        signals=lane_signals(
            advertised(state), circuits, seen, now=look.now, config=look.config.circuits
        ),
        capabilities=capabilities_of(state.upstream, seen),
        models=tuple(_models(look, state, circuits, seen)),
    )


def _models(
    look: Look, state: UpstreamState, circuits: Circuits, seen: Sighting
) -> Iterator[ModelView]:
    """Those that it advertises in its own order, then what else requests asked it for."""
    names = advertised(state)
    others = sorted({model for model, _ in (*circuits, *seen.served)} - set(names))
    lengths = dict(state.discovery.max_lens)
    for model in (*names, *others):
        http, sse, websocket = (
            model_signal(model, lane, circuits, seen, now=look.now, config=look.config.circuits)
            for lane in LANES
        )
        yield ModelView(model, state.provenance(model), lengths.get(model), http, sse, websocket)
