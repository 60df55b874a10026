"""The database as the runtime sees it: rows in memory, that a test can take away or hold up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from llmgw.core.circuit import (
    CLOSED,
    Circuit,
    CircuitEvent,
    CircuitKey,
    DemotionKey,
    Leased,
    advance,
)
from llmgw.core.config import CircuitsConfig
from llmgw.core.pins import PinKind
from llmgw.core.settle import Changes, Scope, Settlement
from llmgw.core.types import AssignmentId, PoolName, UpstreamName
from llmgw.runtime.ports import ANYBODY, Client, StoreError, Stores, View, Written
from llmgw.store.errors import StoreFault

AWAY = StoreError(StoreFault.UNREACHABLE)


class Door:
    """What all stores of one database go through: open, away (`error`), or hanging."""

    def __init__(self) -> None:
        self.error: StoreError | None = None
        self.hangs = False
        self.waiting: list[Callable[[], None]] = []
        self.calls = 0

    def answer(self, make: Callable[[], object]) -> asyncio.Future:
        self.calls += 1
        future = asyncio.get_running_loop().create_future()

        def settle() -> None:
            value = make() if self.error is None else None
            if future.done():
                return
            if self.error is not None:
                future.set_exception(self.error)
                future.exception()
            else:
                future.set_result(value)

        if self.hangs:
            self.waiting.append(settle)
        else:
            asyncio.get_running_loop().call_soon(settle)
        return future

    def release(self) -> None:
        """What hung goes on, in order."""
        self.hangs = False
        waiting, self.waiting = self.waiting, []
        for settle in waiting:
            settle()


class FakeCircuits:
    def __init__(self, door: Door) -> None:
        self.door = door
        self.cursor = 0
        self.rows: dict[CircuitKey, Circuit] = {}
        self.demotions: dict[DemotionKey, float] = {}

    def apply(
        self, changes: Changes, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]:
        return self.door.answer(lambda: self.write(changes, now=now, config=config))

    async def lease(
        self, key: CircuitKey, owner: str, *, now: float, config: CircuitsConfig
    ) -> bool:
        written = await self.apply(Changes(((key, Leased(owner)),)), now=now, config=config)
        return written.circuits[key].holds(owner)

    async def changed_since(self, cursor: int, *, now: float) -> View | None:
        return await self.door.answer(lambda: self._view() if cursor != self.cursor else None)

    def merge(
        self, local: Mapping[CircuitKey, Circuit], base: Mapping[CircuitKey, int]
    ) -> asyncio.Future[Written]:
        return self.door.answer(lambda: self._merge(local, base))

    def write(self, changes: Changes, *, now: float, config: CircuitsConfig) -> Written:
        for key, event in changes.circuits:
            self.step(key, event, now=now, config=config)
        for one in changes.demotions:
            until = None if one.for_seconds is None else now + one.for_seconds
            self.demotions.pop(one.key, None)
            if until is not None:
                self.demotions[one.key] = until
            self.cursor += 1
        return self._written(key for key, _ in changes.circuits)

    def step(
        self, key: CircuitKey, event: CircuitEvent, *, now: float, config: CircuitsConfig
    ) -> None:
        before = self.rows.get(key, CLOSED)
        self.put(key, advance(before, event, now=now, config=config), before)

    def put(self, key: CircuitKey, after: Circuit, before: Circuit = CLOSED) -> None:
        """As if another gateway had written it."""
        if after is before:
            return
        self.cursor += 1
        self.rows.pop(key, None)
        if not after.is_blank:
            self.rows[key] = _at(after, self.cursor)

    def _merge(self, local, base) -> Written:
        for key, circuit in local.items():
            if self.rows.get(key, CLOSED).version == base.get(key, 0):
                self.put(key, circuit)
        return self._written(local)

    def _view(self) -> View:
        return View(self.cursor, dict(self.rows), dict(self.demotions))

    def _written(self, keys) -> Written:
        return Written(self.cursor, {key: self.rows.get(key, CLOSED) for key in keys}, {})


class FakeRequests:
    def __init__(self) -> None:
        self.recorded: list[tuple[Settlement, Client]] = []
        self.opened: list[tuple[Scope, float]] = []

    def record(self, settlement: Settlement, client: Client = ANYBODY) -> None:
        self.recorded.append((settlement, client))

    def record_open(self, scope: Scope, *, started: float, client: Client = ANYBODY) -> None:
        self.opened.append((scope, started))


class FakePins:
    def __init__(self, door: Door) -> None:
        self.door = door
        self.rows: dict[tuple[PoolName, PinKind, str], AssignmentId] = {}

    def put(
        self, pool: PoolName, kind: PinKind, id: str, assignment: AssignmentId, *, now: float
    ) -> asyncio.Future[None]:
        return self.door.answer(lambda: self.rows.update({(pool, kind, id): assignment}))

    def find(
        self, pool: PoolName, kind: PinKind, id: str, *, now: float
    ) -> asyncio.Future[AssignmentId | None]:
        return self.door.answer(lambda: self.rows.get((pool, kind, id)))


class FakeDrains:
    def __init__(self, door: Door) -> None:
        self.door = door
        self.rows: dict[UpstreamName, float] = {}

    async def current(self, *, now: float) -> Mapping[UpstreamName, float]:
        return await self.door.answer(lambda: dict(self.rows))


class FakeDatabase:
    """One database, for as many gateways as a test wants."""

    def __init__(self) -> None:
        self.door = Door()
        self.circuits = FakeCircuits(self.door)
        self.requests = FakeRequests()
        self.pins = FakePins(self.door)
        self.drains = FakeDrains(self.door)
        self.stores = Stores(self.circuits, self.requests, self.pins, self.drains)


def _at(circuit: Circuit, version: int) -> Circuit:
    return replace(circuit, version=version)
