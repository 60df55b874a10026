"""Where a request would rather go: a soft session, a prompt cache; rendezvous hashing.

The hashes are the same on every gateway, so that all of them prefer the same assignment without
telling each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from llmgw.core.types import AssignmentId, KeyId, PoolName

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
MIX = 0xBF58476D1CE4E5B9


@dataclass(frozen=True, slots=True)
class Affinity:
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
