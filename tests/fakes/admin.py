"""A gateway as the admin pages see it, and a book of requests that counts what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from hashlib import scrypt

from llmgw.core.admin_password import PasswordHash
from llmgw.core.circuit import Circuit, CircuitKey
from llmgw.core.config import AdminConfig, AdminUser, Config, Node, Pool
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import Fleet, UpstreamState
from llmgw.core.types import PoolName
from llmgw.runtime.observed import Observed
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.usage import PastRequest, UsageLine
from tests.builders import node
from tests.fakes.gateway import FakeDrains, FakeGateway, FakeRegistry

PASSWORD = "correct horse"
SALT = b"0123456789abcdef"
HASH = str(
    PasswordHash(2, 8, 1, SALT, scrypt(PASSWORD.encode(), salt=SALT, n=2, r=8, p=1, dklen=32))
)
DAY, NIGHT = PoolName("day"), PoolName("night")


@dataclass
class FakeBoard(FakeDrains):
    circuits: dict[CircuitKey, Circuit] = field(default_factory=dict)

    def view(self) -> dict[CircuitKey, Circuit]:
        return self.circuits


@dataclass
class AdminGateway(FakeGateway):
    board: FakeBoard = field(default_factory=FakeBoard)
    observed: Observed = field(default_factory=Observed)


@dataclass
class FakeBook:
    """Answers by pool; each call counts as the queries that the real one makes."""

    usage: dict[str, list[UsageLine]] = field(default_factory=dict)
    requests: dict[str, list[PastRequest]] = field(default_factory=dict)
    asked: list[frozenset[str]] = field(default_factory=list)
    is_away: bool = False
    hangs: bool = False

    async def lately_by_model(
        self, *, now: float, pools: Collection[PoolName] | None = None
    ) -> tuple[UsageLine, ...]:
        await self._asked(pools)
        return tuple(line for pool in pools or () for line in self.usage.get(pool, ()))

    async def recent(
        self, *, pools: Collection[PoolName] | None = None, limit: int = 50
    ) -> tuple[PastRequest, ...]:
        await self._asked(pools)
        return tuple(one for pool in pools or () for one in self.requests.get(pool, ()))[:limit]

    async def _asked(self, pools: Collection[PoolName] | None) -> None:
        assert pools is not None, "an operator never asks for all pools"
        self.asked.append(frozenset(pools))
        if self.is_away:
            raise StoreError(StoreFault.UNREACHABLE)
        if self.hangs:
            await asyncio.Event().wait()


def known(*models: str, lengths: dict[str, int] | None = None) -> ModelDiscovery:
    return ModelDiscovery(
        State.KNOWN, models, listed_at=0.0, max_lens=tuple((lengths or {}).items())
    )


def two_pools(
    *,
    day: Collection[Node] = (node("sun"),),
    night: Collection[Node] = (node("moon", port=9000),),
    **sections: object,
) -> Config:
    """Operator `ada` sees pool `day`, `grace` both, `nobody` none."""
    users = (
        AdminUser("ada", HASH, None, (DAY,)),
        AdminUser("grace", HASH, None, (DAY, NIGHT)),
        AdminUser("nobody", HASH, None, ()),
    )
    return Config(
        nodes=(*day, *night),
        pools=(
            Pool(DAY, tuple(one.name for one in day)),
            Pool(NIGHT, tuple(one.name for one in night)),
        ),
        **{"admin": AdminConfig(users), **sections},
    )


def gateway_of(config: Config, *models: str, **fields: object) -> AdminGateway:
    """Every upstream advertises these models."""
    states = tuple(UpstreamState(one, discovery=known(*models)) for one in config.upstreams)
    return AdminGateway(config, registry=FakeRegistry(states), **fields)


def fleet_of(*states: UpstreamState) -> Fleet:
    return Fleet(1, {one.upstream.name: one for one in states})
