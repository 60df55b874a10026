"""Where a request would rather go: a soft session, a prompt cache; rendezvous hashing.

The hashes are the same on every gateway, so that all of them prefer the same assignment without
telling each other.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from llmgw.core.types import AssignmentId, KeyId, PoolName

Member = TypeVar("Member")

LOOK_AT = 32  # members weighed for one request, so that a thousand cost no more than these

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
MIX = 0xBF58476D1CE4E5B9


class Affinity(NamedTuple):
    """Points of what ties a request to earlier ones; None: nothing does."""

    session: int | None = None
    cache: int | None = None


NOWHERE = Affinity()


def affinity_of(
    *,
    pool: PoolName,
    key: KeyId | None,
    model: str,
    session: str | None,
    cache_key: str | None,
) -> Affinity:
    """Scoped by pool, key and model: no client can aim at what another one uses."""
    if session is None and cache_key is None:
        return NOWHERE
    scope = f"{pool}\0{key}\0{model}\0"
    return Affinity(
        session=None if session is None else _point(f"{scope}s\0{session}"),
        cache=None if cache_key is None else _point(f"{scope}c\0{cache_key}"),
    )


def home_of(pool: PoolName, model: str | None) -> int:
    """The point of a request that is tied to nothing but its model."""
    return _point(f"{pool}\0{model}")


class Ring(Generic[Member]):
    """Members in the order of their seeds, to find the few that are near a point.

    Up to `LOOK_AT` members this is plain rendezvous hashing. Of more, only those that follow the
    point are weighed: one that comes or goes still moves only the points near it.
    """

    __slots__ = ("_seeded", "_seeds")

    def __init__(self, members: Iterable[tuple[AssignmentId, Member]]) -> None:
        pairs = ((seed_of(name), member) for name, member in members)
        self._seeded = sorted(pairs, key=lambda pair: pair[0])
        self._seeds = [seed for seed, _ in self._seeded]

    def nearest(
        self, point: int, count: int, keep: Callable[[Member], bool] | None = None
    ) -> list[Member]:
        """The best `count` members at the point, of those to `keep`; None keeps all."""
        start, size = bisect(self._seeds, point), len(self._seeded)
        walk = (self._seeded[(start + step) % size] for step in range(size))
        kept = (pair for pair in walk if keep is None or keep(pair[1]))
        best = nlargest(count, islice(kept, LOOK_AT), key=lambda pair: weight(pair[0], point))
        return [member for _, member in best]


@lru_cache(maxsize=16384)
def seed_of(assignment: AssignmentId) -> int:
    """An assignment's own 64 bits."""
    return _point(assignment)


def weight(seed: int, point: int) -> int:
    """Rendezvous: of all seeds the one with the greatest weight at `point` is chosen.

    Two rounds of a multiplicative mix, as in splitmix64: seeds and points are hashes already.
    """
    mixed = ((seed ^ point) * GOLDEN) & MASK
    return ((mixed ^ (mixed >> 29)) * MIX) & MASK


def _point(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
