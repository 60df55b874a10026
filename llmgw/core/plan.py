"""The route plan: the ordered candidates of one request, cut to size, made once.

Order: healthy before degraded, then undemoted before demoted, then those that advertise the
model before the untried, then a soft session's assignment, then the pool's strategy. The work
does not grow with the pool: what is sorted once is kept on the eligibility, and what is weighed
for one request is `LOOK_AT` candidates at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple, assert_never

from llmgw.core.affinity import LOOK_AT, NOWHERE, Affinity, home_of
from llmgw.core.eligibility import Ask, Candidate, Eligibility, Tier
from llmgw.core.types import AssignmentId, Strategy

Keep = Callable[[Candidate], bool] | None  # None: all of them


class RoutePlan(NamedTuple):
    candidates: tuple[Candidate, ...]


def build_plan(
    eligibility: Eligibility,
    *,
    size: int,
    strategy: Strategy,
    turn: int,
    affinity: Affinity = NOWHERE,
    demoted: AbstractSet[AssignmentId] = frozenset(),
    load: Callable[[Candidate], float] = lambda _: 0.0,
    last_success: Callable[[Candidate], float] = lambda _: 0.0,
) -> RoutePlan:
    """`turn` grows by one with every request of the same pool and model. Give `affinity` without
    its cache where the pool says `cache_affinity = false`. `demoted`: of this key and model, now.
    """
    if strategy is Strategy.ROUND_ROBIN and affinity == NOWHERE and not demoted:
        return RoutePlan(_in_turn(eligibility, turn, size))
    order = _Order(eligibility.ask, strategy, turn, affinity, load, last_success)
    chosen: list[Candidate] = []
    for tiers in eligibility.tiers:
        for keep in _passes(demoted):
            for tier in tiers:
                if tier.members and len(chosen) < size:
                    chosen += order.first(tier, size - len(chosen), keep)
    return RoutePlan(tuple(chosen))


def led_by(plan: RoutePlan, first: Candidate) -> RoutePlan:
    """The same plan, no longer than it was, with one in front that was asked already."""
    if plan.candidates[0].assignment == first.assignment:
        return plan
    others = (one for one in plan.candidates if one.assignment != first.assignment)
    return RoutePlan((first, *others)[: len(plan.candidates)])


def _in_turn(eligibility: Eligibility, turn: int, size: int) -> tuple[Candidate, ...]:
    """What the rest of this module comes to where nothing but the turn counts: the usual case."""
    chosen: tuple[Candidate, ...] = ()
    for tiers in eligibility.tiers:
        for tier in tiers:
            members = tier.members
            if members and len(chosen) < size:
                start = turn % len(members)
                walk = members[start : start + size] + members[: min(start, size)]
                chosen += walk[: size - len(chosen)]
    return chosen


def _passes(demoted: AbstractSet[AssignmentId]) -> tuple[Keep, ...]:
    """All at once, or first the undemoted and then the demoted."""
    if not demoted:
        return (None,)
    return (
        lambda one: one.assignment not in demoted,
        lambda one: one.assignment in demoted,
    )


@dataclass(frozen=True, slots=True)
class _Order:
    """How one request ranks the candidates of a tier."""

    ask: Ask
    strategy: Strategy
    turn: int
    affinity: Affinity
    load: Callable[[Candidate], float]
    last_success: Callable[[Candidate], float]

    def first(self, tier: Tier, room: int, keep: Keep) -> list[Candidate]:
        ranked = self._ranked(tier, room, keep)
        if self.affinity.session is None or not ranked:
            return ranked
        own = tier.ring.nearest(self.affinity.session, 1, keep)[0]
        return [own, *(one for one in ranked if one is not own)][:room]

    def _ranked(self, tier: Tier, room: int, keep: Keep) -> list[Candidate]:
        point = self._point()
        if point is not None:
            return tier.ring.nearest(point, room, keep)
        walk = filter(keep, _from(tier.members, self.turn))
        match self.strategy:
            case Strategy.ROUND_ROBIN | Strategy.RENDEZVOUS:
                return list(islice(walk, room))
            case Strategy.LEAST_LOAD:
                return nsmallest(room, islice(walk, LOOK_AT), key=self.load)
            case Strategy.LEAST_RECENT_SUCCESS:
                return nsmallest(room, islice(walk, LOOK_AT), key=self.last_success)
            case _:
                assert_never(self.strategy)

    def _point(self) -> int | None:
        """Where rendezvous begins; None: another strategy ranks."""
        if self.affinity.cache is not None:
            return self.affinity.cache
        if self.strategy is Strategy.RENDEZVOUS:
            return home_of(self.ask.pool, self.ask.model)
        return None


def _from(members: tuple[Candidate, ...], turn: int) -> Iterator[Candidate]:
    size = len(members)
    return (members[(turn + step) % size] for step in range(size))
