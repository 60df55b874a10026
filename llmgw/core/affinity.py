"""Where a request would rather go: a soft session, a prompt cache; rendezvous hashing."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.types import KeyId, PoolName


@dataclass(frozen=True, slots=True)
class Affinity:
    """Hashes of what ties a request to earlier ones; None: nothing does."""

    session: int | None = None
    cache: int | None = None


def affinity_of(
    *,
    pool: PoolName,
    key: KeyId | None,
    model: str,
    session: str | None,
    cache_key: str | None,
) -> Affinity:
    raise NotImplementedError


def seed_of(assignment: str) -> int:
    """An assignment's own 64 bits, the same on every gateway."""
    raise NotImplementedError


def weight(seed: int, point: int) -> int:
    """Rendezvous: of all seeds the one with the greatest weight at `point` is chosen."""
    raise NotImplementedError
