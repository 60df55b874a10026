"""A connection of SQLite's that one thread uses: a piece of work is one call into it.

The driver that the general way has goes to its thread and back for each cursor, statement and
row set, ten times for the shortest of transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    @property
    def close(self) -> Callable[[], None]: ...


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class OwnThread(Generic[C]):
    """Its connection is made when first needed, and anew after a fault: whatever was open on the
    old one is rolled back with it."""

    def __init__(self, connect: Callable[[], C], name: str) -> None:
        self._connect = connect
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._open: C | None = None

    async def run(self, work: Callable[[C], T]) -> T:
        """One after another. Cancelled, it goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._drop)
        self._thread.shutdown(wait=False)

    def _run(self, work: Callable[[C], T]) -> T:
        try:
            if self._open is None:
                self._open = self._connect()
            return work(self._open)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()
