"""Eligibility and catalogs, computed once and kept until something that they look at changed.

With a thousand nodes the filter is the dearest step of a request; its inputs change rarely.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from llmgw.core.affinity import Affinity, affinity_of
from llmgw.core.catalog import Catalog, build_catalog
from llmgw.core.eligibility import Ask, Candidate, Eligibility, refusal, select_eligible
from llmgw.core.errors import GatewayError
from llmgw.core.fleet import UpstreamState
from llmgw.core.plan import RoutePlan, build_plan
from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId, PoolName, Strategy
from llmgw.core.wire import Call
from llmgw.runtime.board import Board
from llmgw.runtime.registry import Registry
from llmgw.runtime.snapshot import Snapshot

MOST_KEPT = 4096  # clients choose model names: what is kept of them is bounded


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a kept answer was computed from."""

    snapshot: Snapshot
    fleet: int
    board: int

    def is_fresh(self, snapshot: Snapshot, fleet: int, board: int) -> bool:
        return self.snapshot is snapshot and self.fleet == fleet and self.board == board


class Turns:
    """Whose turn it is among those that serve one model of a pool."""

    __slots__ = ("last",)

    def __init__(self, last: int) -> None:
        self.last = last


class Router:
    """Answers who may serve, in which order, and what a pool offers."""

    def __init__(
        self,
        registry: Registry,
        board: Board,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._board = board
        self._clock = clock
        self._wall = wall
        self._eligible: dict[Ask, tuple[_Seen, Eligibility]] = {}
        self._catalogs: dict[PoolName, tuple[_Seen, Catalog]] = {}
        self._turns: dict[tuple[PoolName, str], Turns] = {}
        self._succeeded: dict[AssignmentId, float] = {}

    def eligible(self, snapshot: Snapshot, ask: Ask) -> Eligibility:
        fleet, board = self._registry.version, self._board.version
        kept = self._eligible.get(ask)
        if (
            kept
            and kept[0].is_fresh(snapshot, fleet, board)
            and self._clock() < kept[1].valid_until
        ):
            return kept[1]
        if len(self._eligible) >= MOST_KEPT:
            self._eligible.clear()
        found = self._select(snapshot, ask)
        self._eligible[ask] = (_Seen(snapshot, fleet, board), found)
        return found

    def plan(
        self,
        snapshot: Snapshot,
        eligibility: Eligibility,
        call: Call,
        principal: Principal,
        *,
        turn: int | None = None,
    ) -> RoutePlan:
        """On a turn of its own, or on one that was looked up (`turns`)."""
        pool = snapshot.pools[principal.pool]
        named = eligibility.ask.model is not None
        if turn is None and named:
            turns = self.turns(pool.name, call.model)
            turn = turns.last = turns.last + 1
        return build_plan(
            eligibility,
            size=snapshot.config.routing.plan_size,
            strategy=pool.strategy if named else Strategy.ROUND_ROBIN,
            # files that a later request names together should lie at one assignment
            turn=turn if named and turn is not None else 0,
            affinity=self._affinity(call, principal, cached=pool.cache_affinity),
            demoted=self._board.demoted(pool.name, principal.key, call.model),
            load=self._load,
            last_success=self._last_success,
        )

    def turns(self, pool: PoolName, model: str) -> Turns:
        """Each model takes turns of its own: with shared ones, two models that are asked for by
        turns would stick to one node each. They begin staggered, for rare models are many.
        """
        found = self._turns.get((pool, model))
        if found is None:
            if len(self._turns) >= MOST_KEPT:
                self._turns.clear()
            found = self._turns[pool, model] = Turns(len(self._turns))
        return found

    def catalog(self, snapshot: Snapshot, pool: PoolName) -> Catalog:
        fleet = self._registry.listings
        kept = self._catalogs.get(pool)
        if kept and kept[0].is_fresh(snapshot, fleet, 0):
            return kept[1]
        found = build_catalog(self._states(snapshot, pool), configured=snapshot.configured)
        self._catalogs[pool] = (_Seen(snapshot, fleet, 0), found)
        return found

    def refusal(self, snapshot: Snapshot, eligibility: Eligibility) -> GatewayError:
        catalog = self.catalog(snapshot, eligibility.ask.pool)
        return refusal(eligibility, catalog, now=self._clock())

    def knows(self, snapshot: Snapshot, pool: PoolName, model: str) -> bool:
        return self.catalog(snapshot, pool).knows(model)

    def succeeded(self, assignment: AssignmentId) -> None:
        """For the order `least_recent_success`."""
        self._succeeded[assignment] = self._clock()

    def _select(self, snapshot: Snapshot, ask: Ask) -> Eligibility:
        return select_eligible(
            ask,
            self._states(snapshot, ask.pool),
            self._board.view(),
            now=self._clock(),
            wall=self._wall(),
            overload_threshold=snapshot.config.gateway.request_overload_threshold,
            config=self._board.config,
            draining=self._board.draining(),
        )

    def _states(
        self, snapshot: Snapshot, pool: PoolName
    ) -> tuple[tuple[AssignmentId, UpstreamState], ...]:
        """The pool's assignments as they are now; a node that is gone has no state any more."""
        state = self._registry.state
        members = snapshot.members.get(pool, ())
        found = ((assignment, state(upstream)) for assignment, upstream in members)
        return tuple((assignment, one) for assignment, one in found if one is not None)

    def _affinity(self, call: Call, principal: Principal, *, cached: bool) -> Affinity:
        if call.session is None and call.cache_key is None:
            return _FREE
        return affinity_of(
            pool=principal.pool,
            key=principal.key,
            model=call.model,
            session=call.session,
            cache_key=call.cache_key if cached else None,
        )

    def _load(self, candidate: Candidate) -> float:
        return self._registry.load(candidate.upstream)

    def _last_success(self, candidate: Candidate) -> float:
        return self._succeeded.get(candidate.assignment, 0.0)


_FREE = Affinity()
