"""Reads for whoever must not hold a connection: a handler waits on a future, a task reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.store.database import Database
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.glance import Glance

T = TypeVar("T")
Query = Callable[[AsyncConnection], Awaitable[T]]

MAX_WAITING = 1000
TRIES = 2  # after a lost connection the pool has only new ones


class Reader:
    """Carries queries out in turn. `run` is a loop for a supervisor; several may run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[tuple[Query[Any], asyncio.Future[Any]]] = deque()
        self._wake = asyncio.Event()

    def fetch(self, query: Query[T]) -> asyncio.Future[T]:
        """Fails with `StoreError` where the database does not answer."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= MAX_WAITING:
            future.set_exception(StoreError(StoreFault.UNREACHABLE, "too many reads wait"))
        else:
            self._waiting.append((query, future))
            self._wake.set()
        return future

    async def read(self, query: Query[T]) -> T:
        """At once, on a connection of the caller's task: for loops, not for handlers."""

        async def once() -> T:
            async with self._database.read() as connection:
                return await query(connection)

        return await _again(once)

    async def glance(self, query: Glance, **values: float) -> list[Sequence[Any]]:
        """The rows of one statement, at once: as `read`, for what is asked all the time."""
        return await _again(lambda: self._database.glance(query, **values))

    async def run(self) -> None:
        while True:
            while self._waiting:
                await self._serve(*self._waiting.popleft())
            self._wake.clear()
            await self._wake.wait()

    async def _serve(self, query: Query[Any], future: asyncio.Future[Any]) -> None:
        if future.done():  # nobody waits any more
            return
        try:
            value = await self.read(query)
        except BaseException as error:
            _fail(future, error if isinstance(error, StoreError) else None)
            if not isinstance(error, StoreError):
                raise
        else:
            if not future.done():
                future.set_result(value)


async def _again(once: Callable[[], Awaitable[T]]) -> T:
    for attempt in range(1, TRIES + 1):
        try:
            return await once()
        except StoreError as error:
            if attempt == TRIES or error.fault is not StoreFault.UNREACHABLE:
                raise
    raise AssertionError("the last try returns or raises")


def _fail(future: asyncio.Future[Any], error: StoreError | None) -> None:
    if not future.done():
        future.set_exception(error or StoreError(StoreFault.OTHER, "the read was given up"))
        future.exception()  # looked at: no complaint where the waiter has left
