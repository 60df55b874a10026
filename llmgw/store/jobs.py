"""What waits for the writer: rows or an operation, and the future that tells of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from llmgw.store.errors import StoreError
from llmgw.store.rows import Row
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
    waiting: int  # requests, other rows and operations in memory
    spooled: int  # rows on disk
    lost: int  # rows since the start
    refused: int  # rows that the database would never take
    error: str | None  # of the outage


@dataclass(slots=True, eq=False)
class Job:
    """`rows` can be spooled; an operation can only be told that it failed."""

    work: Operation[Any]
    future: asyncio.Future[Any]
    rows: tuple[Row, ...] = ()
    result: Any = field(default=None, init=False)
    is_settled: bool = field(default=False, init=False)

    async def run(self, transaction: Transaction) -> None:
        self.result = await self.work(transaction)

    def succeed(self) -> None:
        self.is_settled = True
        if not self.future.done():  # the waiter may have left
            self.future.set_result(self.result)

    def fail(self, error: StoreError) -> None:
        self.is_settled = True
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # looked at: no complaint where nobody waits


def operation_job(operation: Operation[T], future: asyncio.Future[T]) -> Job:
    return Job(operation, future)


def rows_job(rows: tuple[Row, ...], future: asyncio.Future[None]) -> Job:
    async def insert(transaction: Transaction) -> None:
        await transaction.insert(rows)

    return Job(insert, future, rows)
