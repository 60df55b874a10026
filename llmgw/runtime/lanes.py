"""What requests of one kind have in common, found once and kept until something changes.

A lane is for those that may be carried by callbacks alone: where anything has to be waited for
before an upstream is asked, there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llmgw.core.budget import RetryBudget
from llmgw.core.config import Config
from llmgw.core.eligibility import Candidate, Eligibility
from llmgw.core.lines import AnswerForms
from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId, PoolName, RouteClass, Strategy
from llmgw.core.wire import Call
from llmgw.observe.metrics import ASSIGNMENT_IN_FLIGHT, child
from llmgw.observe.plain import Gauge
from llmgw.runtime.gateway import MODEL_EXCLUSIONS, Gateway
from llmgw.runtime.ports import IdlePool
from llmgw.runtime.registry import Entry
from llmgw.runtime.router import Turns
from llmgw.runtime.settler import SuccessCounters, success_counters
from llmgw.runtime.snapshot import Snapshot

MOST_KEPT = 4096  # clients choose model names: what is kept of them is bounded

Key = tuple[PoolName, str, str, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """A candidate with what every attempt on it counts."""

    candidate: Candidate
    entry: Entry
    running: Gauge
    pool: IdlePool
    success: SuccessCounters


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """One pool's requests for one model on one route, streaming or not."""

    snapshot: Snapshot
    fleet: int  # the versions of what it was found from
    board: int
    valid_until: float  # monotonic
    eligibility: Eligibility
    label: str  # of the model, in metrics
    route_class: RouteClass
    forms: AnswerForms
    seats: Mapping[AssignmentId, Seat]
    first: tuple[Seat, ...]  # of which one comes first, by turns; empty: the plan has to tell
    budget: RetryBudget
    turns: Turns


class Lanes:
    """Finds lanes, and keeps them as long as they hold."""

    def __init__(self, gateway: Gateway, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._kept: dict[Key, Lane] = {}
        self._forms = AnswerForms()

    def find(self, snapshot: Snapshot, call: Call, principal: Principal) -> Lane | None:
        """None: there is something to wait for, to count or to refuse."""
        gateway = self._gateway
        key = (principal.pool, call.model, call.route.path, call.stream)
        lane = self._kept.get(key)
        if (
            lane is not None
            and lane.snapshot is snapshot
            and lane.fleet == gateway.registry.version
            and lane.board == gateway.board.version
            and self._clock() < lane.valid_until
        ):
            return lane
        lane = self._make(snapshot, call, principal)
        if lane is not None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = lane
        return lane

    def _make(self, snapshot: Snapshot, call: Call, principal: Principal) -> Lane | None:
        gateway, pool = self._gateway, snapshot.pools.get(principal.pool)
        if pool is None:  # it went with a reload, while the request's body came
            return None
        if call.is_compact or pool.max_in_flight is not None or _has_waits(snapshot.config):
            return None
        fleet, board = gateway.registry.version, gateway.board.version
        eligibility = gateway.router.eligible(snapshot, gateway.ask_of(call, principal))
        if not eligibility.candidates or any(map(eligibility.excluded.get, MODEL_EXCLUSIONS)):
            return None
        label = gateway.label(principal.pool, call.model)
        seats = {one.assignment: self._seat(one, label) for one in eligibility.candidates}
        found = {name: seat for name, seat in seats.items() if seat is not None}
        by_turns = pool.strategy is Strategy.ROUND_ROBIN and len(found) == len(seats)
        first = _first_tier(eligibility) if by_turns else ()
        return Lane(
            snapshot,
            fleet,
            board,
            eligibility.valid_until,
            eligibility,
            label,
            call.lane,
            self._forms,
            found,
            tuple(found[one.assignment] for one in first),
            gateway.errands.budget(principal.pool),
            gateway.router.turns(principal.pool, call.model),
        )

    def _seat(self, candidate: Candidate, label: str) -> Seat | None:
        """None: the upstream is gone."""
        entry = self._gateway.registry.entry(candidate.upstream)
        if entry is None:
            return None
        return Seat(
            candidate,
            entry,
            child(ASSIGNMENT_IN_FLIGHT, candidate.assignment),
            self._gateway.errands.tools.upstreams.pool(candidate.upstream),
            success_counters(candidate.assignment, label),
        )


def _has_waits(config: Config) -> bool:
    """A place that may have to be waited for, limits that need a timer of their own, or a client
    that wants to be told how it went."""
    return (
        config.limits.max_in_flight is not None
        or config.routing.header_timeout is not None
        or config.streams.first_event_timeout is not None
        or config.routing.explain
    )


def _first_tier(eligibility: Eligibility) -> tuple[Candidate, ...]:
    tiers = (tier for both in eligibility.tiers for tier in both)
    return next((tier.members for tier in tiers if tier.members), ())
