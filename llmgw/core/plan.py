"""The route plan: the ordered candidates of one request, cut to size, made once."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from llmgw.core.affinity import Affinity
from llmgw.core.eligibility import Candidate, Eligibility
from llmgw.core.types import AssignmentId, Strategy


@dataclass(frozen=True, slots=True)
class RoutePlan:
    candidates: tuple[Candidate, ...]


def build_plan(
    eligibility: Eligibility,
    *,
    size: int,
    strategy: Strategy,
    turn: int,
    affinity: Affinity = Affinity(),  # noqa: B008
    demoted: AbstractSet[AssignmentId] = frozenset(),
    load: Callable[[Candidate], float] = lambda _: 0.0,
    last_success: Callable[[Candidate], float] = lambda _: 0.0,
) -> RoutePlan:
    """`turn` grows by one with every request of the pool. Give `affinity` without its cache
    where the pool says `cache_affinity = false`. `demoted`: of this key and model, now."""
    raise NotImplementedError
