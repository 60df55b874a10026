"""One configuration with what routing derives from it; a reload replaces it whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llmgw.core.config import Config, Pool, Upstream
from llmgw.core.types import AssignmentId, PoolName

Member = tuple[AssignmentId, Upstream]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What a request begins with and is served on to its end, also after a reload."""

    config: Config
    pools: Mapping[PoolName, Pool]
    members: Mapping[PoolName, tuple[Member, ...]]
    rings: Mapping[str, str | None]
    configured: tuple[str, ...]  # the names of `[[models.available]]`, then the default


def build_snapshot(config: Config) -> Snapshot:
    upstreams = {one.name: one for one in config.upstreams}
    names = [one.name for one in config.models.available]
    if config.models.default:
        names.append(config.models.default)
    return Snapshot(
        config=config,
        pools={pool.name: pool for pool in config.pools},
        members={
            pool.name: tuple((pool.assignment(name), upstreams[name]) for name in pool.upstreams)
            for pool in config.pools
        },
        rings={one.name: one.ring for one in config.models.available},
        configured=tuple(dict.fromkeys(names)),
    )


def seats_of(snapshot: Snapshot) -> frozenset[tuple[PoolName, AssignmentId]]:
    """Every assignment with its pool: a name may hold a slash, so an id alone could be two."""
    return frozenset(
        (pool, assignment)
        for pool, members in snapshot.members.items()
        for assignment, _ in members
    )
