"""One task writes. Whoever has something to write hands it over and may wait on a future; the
write is made whether anybody waits or not.

Rows come in batches; operations (circuits, leases) and pins at once, grouped in one transaction.
While the database is away rows go to the spool, and operations fail: their caller goes on alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from llmgw.store.commit import commit
from llmgw.store.database import Database
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.jobs import Job, Operation, WriterStatus, operation_job, rows_job
from llmgw.store.outage import Outage
from llmgw.store.rows import Row
from llmgw.store.settled import Settled, rows_of
from llmgw.store.spool import Spool

T = TypeVar("T")
Entry = Row | Settled

BATCH_EVERY = 0.2
BATCH_ROWS = 1000  # that are not left to wait; a request and its attempts count as one
GROUP_JOBS = 200
MAX_JOBS = 10_000
MAX_ROWS = 50_000


class Writer:
    """Owns all writes. `run` is a loop for a supervisor; `close` flushes and ends it."""

    def __init__(self, database: Database, spool: Spool) -> None:
        self._database = database
        self._outage = Outage(database, spool)
        self._jobs: deque[Job] = deque()
        self._entries: deque[Entry] = deque()
        self._wake = asyncio.Event()
        self._due = False  # entries are written now
        self._timer: asyncio.TimerHandle | None = None
        self._flushes: list[asyncio.Future[None]] = []
        self._closing = False
        self._at_work = asyncio.Lock()  # `close` helps where `run` was cancelled
        self._refused = 0
        self._overflowed = 0

    @property
    def status(self) -> WriterStatus:
        outage = self._outage
        return WriterStatus(
            state=outage.state,
            waiting=len(self._entries) + len(self._jobs),
            spooled=outage.spooled,
            lost=outage.lost + self._overflowed,
            refused=self._refused,
            error=None if outage.error is None else str(outage.error),
        )

    def record(self, rows: Iterable[Row]) -> None:
        """Write within a batch (200 ms); never waits, never fails."""
        if len(self._entries) >= MAX_ROWS:
            self._overflowed += sum(1 for _ in rows)
            return
        self._entries.extend(rows)
        self._plan_batch()

    def record_settled(self, settled: Settled) -> None:
        """The same for a request and its attempts, which become rows with their batch."""
        if len(self._entries) >= MAX_ROWS:
            self._overflowed += len(rows_of(settled))
            return
        self._entries.append(settled)
        if self._timer is None or len(self._entries) >= BATCH_ROWS:
            self._plan_batch()

    def put(self, rows: Iterable[Row]) -> asyncio.Future[None]:
        """Write at once; done when committed, or when on disk during an outage."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hand_over(rows_job(tuple(rows), future))
        return future

    def submit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run in the next transaction; fails with `StoreError` during an outage."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = operation_job(operation, future)
        if self._outage.error is not None:
            job.fail(self._outage.error)
        else:
            self._hand_over(job)
        return future

    async def flush(self) -> None:
        """Wait until everything handed over so far is written or spooled."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.append(future)
        self._batch_is_due()
        await future

    async def run(self) -> None:
        async with self._at_work:
            await self._outage.look_for_leftovers()
        while not (self._closing and self._is_empty):
            await self._wake.wait()
            self._wake.clear()
            await self._step()

    async def close(self) -> None:
        """Write what waits; nothing may be handed over after. Works with `run` ended or not."""
        self._closing = True
        self._batch_is_due()
        while not self._is_empty:
            await self._step()
        self._wake.set()
        if self._timer is not None:
            self._timer.cancel()
        await self._outage.close()

    @property
    def _is_empty(self) -> bool:
        return not (self._jobs or self._entries or self._flushes)

    def _hand_over(self, job: Job) -> None:
        if len(self._jobs) >= MAX_JOBS:
            job.fail(StoreError(StoreFault.LOCKED, "too many writes wait"))
            return
        self._jobs.append(job)
        self._wake.set()

    def _plan_batch(self) -> None:
        """When the entries are enough, or old enough. What came while others were written waits
        its own time: a transaction for each few of them would cost more than all requests."""
        if len(self._entries) >= BATCH_ROWS:
            self._batch_is_due()
        elif self._entries and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_EVERY, self._batch_is_due)

    def _batch_is_due(self) -> None:
        self._due = True
        self._wake.set()

    async def _step(self) -> None:
        """One group, one batch; what is left is for the next step."""
        async with self._at_work:
            if self._outage.error is not None and not self._closing:
                self._outage.wake_later(self._wake)
                await self._outage.try_to_end()
            if self._jobs:
                await self._write_group()
            if self._due:
                await self._write_batch()
        if self._jobs or self._due:
            self._wake.set()

    async def _write_group(self) -> None:
        group = [self._jobs.popleft() for _ in range(min(GROUP_JOBS, len(self._jobs)))]
        try:
            await self._write(group)
        except asyncio.CancelledError:
            self._jobs.extendleft(job for job in reversed(group) if not job.is_settled)
            raise
        except BaseException:  # a mistake in an operation: nobody shall wait for ever
            for job in group:
                job.fail(StoreError(StoreFault.OTHER, "an operation broke off"))
            raise

    async def _write_batch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entries = tuple(islice(self._entries, BATCH_ROWS))
        if entries:
            await self._write_entries(entries)
            for _ in entries:  # only now: a cancelled write leaves them where they were
                self._entries.popleft()
        if not self._entries and not self._jobs:
            self._flushed()
        self._due = self._closing or bool(self._flushes)
        self._plan_batch()

    async def _write_entries(self, entries: tuple[Entry, ...]) -> None:
        settled = [one for one in entries if not isinstance(one, Row)]
        if settled and self._outage.error is None and await self._write_settled(settled):
            if len(settled) == len(entries):
                return
            entries = tuple(one for one in entries if isinstance(one, Row))
        if entries:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            await self._write([rows_job(_rows_of(entries), future)])

    async def _write_settled(self, settled: list[Settled]) -> bool:
        """False: they go the general way, which also finds the one that spoils all others."""
        try:
            return await self._database.write_settled(settled)
        except StoreError as error:
            if error.is_outage:
                self._begin_outage(error)
            return False

    async def _write(self, group: list[Job]) -> None:
        """Settles every job of the group."""
        error = self._outage.error
        if error is None:
            try:
                self._refused += await commit(self._database, group)
                return
            except StoreError as fresh:
                error = fresh
                self._begin_outage(error)
        await self._outage.settle([job for job in group if not job.is_settled], error)

    def _begin_outage(self, error: StoreError) -> None:
        self._outage.begin(error)
        self._outage.wake_later(self._wake)

    def _flushed(self) -> None:
        waiting, self._flushes = self._flushes, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _rows_of(entries: Iterable[Entry]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for entry in entries:
        if isinstance(entry, Row):
            rows.append(entry)
        else:
            rows += rows_of(entry)
    return tuple(rows)
