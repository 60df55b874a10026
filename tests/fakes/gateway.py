"""The gateway as the web floor sees it, with a script in place of upstreams."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from llmgw.core.catalog import Catalog, build_catalog
from llmgw.core.config import Config, KeyConfig
from llmgw.core.fleet import Fleet, UpstreamState
from llmgw.core.policy import KeyRing, Principal
from llmgw.core.types import AssignmentId, PoolName, UpstreamName
from llmgw.core.wire import Call
from llmgw.runtime.journey import Journey
from llmgw.runtime.ports import Downstream
from llmgw.runtime.standing import ConfigStatus

JSON = (("content-type", "application/json"),)
Serve = Callable[[Call, Principal, Downstream], Awaitable[None]]


async def answer_hello(call: Call, principal: Principal, downstream: Downstream) -> None:
    downstream.respond(200, JSON, b'{"id":"hello"}')


@dataclass
class FakeRegistry:
    states: tuple[UpstreamState, ...] = ()

    def fleet(self) -> Fleet:
        return Fleet(1, {state.upstream.name: state for state in self.states})


@dataclass
class FakeDrains:
    drained: frozenset[UpstreamName] = frozenset()

    def draining(self) -> frozenset[UpstreamName]:
        return self.drained


@dataclass
class FakeGateway:
    """`serving` answers the calls that got through; they are kept in `calls`."""

    config: Config = field(default_factory=Config)
    keyring: KeyRing = field(default_factory=KeyRing.open)
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    board: FakeDrains = field(default_factory=FakeDrains)
    serving: Serve = answer_hello
    instance: str = "fake01"
    ready: bool = True
    draining: bool = False
    database_state: str = "ok"
    config_status: ConfigStatus = field(default_factory=lambda: ConfigStatus(0.0, "abc123"))
    calls: list[Call] = field(default_factory=list)
    pools: list[PoolName] = field(default_factory=list)
    journey: Journey | None = None
    _numbers: Iterable[int] = field(default_factory=itertools.count)

    def new_request_id(self) -> str:
        return f"req_{next(self._numbers)}"

    def catalog(self, pool: PoolName) -> Catalog:
        self.pools.append(pool)
        states = self.registry.states
        return build_catalog(
            [(AssignmentId(f"{pool}/{one.upstream.name}"), one) for one in states],
            configured=[one.name for one in self.config.models.available],
        )

    async def serve(
        self,
        call: Call,
        principal: Principal,
        downstream: Downstream,
        *,
        journey: Journey | None = None,
    ) -> None:
        self.journey = journey
        self.calls.append(call)
        await self.serving(call, principal, downstream)


def keyring(*tokens: str, **options: object) -> KeyRing:
    from hashlib import sha256

    return KeyRing.from_keys(
        KeyConfig(f"key-{token}", sha256(token.encode()).hexdigest(), **options)
        for token in tokens
    )
