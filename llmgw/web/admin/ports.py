"""What the admin pages ask of the gateway, of its database, and of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar

from llmgw.core.circuit import Circuit, CircuitKey
from llmgw.core.config import Config
from llmgw.core.fleet import Fleet
from llmgw.core.types import PoolName, UpstreamName
from llmgw.runtime.observed import Observed
from llmgw.store.usage import PastRequest, UsageLine

T = TypeVar("T")


class Registry(Protocol):
    def fleet(self) -> Fleet: ...


class Board(Protocol):
    def view(self) -> Mapping[CircuitKey, Circuit]: ...

    def draining(self) -> AbstractSet[UpstreamName]:
        """Nodes that operators have taken out, beside those of the configuration."""


class Gateway(Protocol):
    """Only readings: no method of these asks an upstream for anything."""

    @property
    def config(self) -> Config: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def board(self) -> Board: ...

    @property
    def observed(self) -> Observed: ...

    @property
    def draining(self) -> bool: ...


class Book(Protocol):
    """What requests of all gateways have left in the database. Fails with `StoreError`."""

    async def lately_by_model(
        self, *, now: float, pools: Collection[PoolName] | None = None
    ) -> tuple[UsageLine, ...]:
        """Of the last five minutes. One query."""

    async def recent(
        self, *, pools: Collection[PoolName] | None = None, limit: int = 50
    ) -> tuple[PastRequest, ...]:
        """The newest first, with their attempts. Two queries."""


class Spawn(Protocol):
    """Starts a task that somebody owns: a query goes on to its end where a client leaves."""

    def __call__(self, name: str, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...
