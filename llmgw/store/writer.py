"""One task writes. Whoever has something to write hands it over and may wait on a future; the
write is made whether anybody waits or not.

Rows come in batches; operations (circuits, leases) and pins at once, grouped in one transaction.
While the database is away rows go to the spool, and operations fail: their caller goes on alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from llmgw.store.database import Database
from llmgw.store.rows import Row
from llmgw.store.spool import Spool
from llmgw.store.transaction import Transaction

T = TypeVar("T")
Operation = Callable[[Transaction], Awaitable[T]]
"""It may run more than once, and only its last run counts: nothing but the database may change."""


class DatabaseState(StrEnum):
    OK = "ok"
    SPOOLING = "spooling"  # it does not answer; rows wait on disk
    DOWN = "down"  # it does not answer, and the spool takes no more: rows are lost


@dataclass(frozen=True, slots=True)
class WriterStatus:
    state: DatabaseState
    waiting: int  # rows and operations in memory
    spooled: int  # rows on disk
    lost: int  # rows since the start
    refused: int  # rows that the database would never take
    error: str | None  # of the outage


class Writer:
    """Owns all writes. `run` is a loop for a supervisor; `close` flushes and ends it."""

    def __init__(self, database: Database, spool: Spool) -> None: ...

    @property
    def status(self) -> WriterStatus: ...

    def record(self, rows: Iterable[Row]) -> None:
        """Write within a batch (200 ms); never waits, never fails."""

    def put(self, rows: Iterable[Row]) -> asyncio.Future[None]:
        """Write at once; done when committed, or when on disk during an outage."""

    def submit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run in the next transaction; fails with `StoreError` during an outage."""

    async def flush(self) -> None:
        """Wait until everything handed over so far is written or spooled."""

    async def run(self) -> None: ...

    async def close(self) -> None:
        """Write what waits; nothing may be handed over after. Works with `run` ended or not."""
