"""What the writer does while the database is away: keep rows on disk, and look for its return."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from llmgw.store.commit import commit
from llmgw.store.database import Database
from llmgw.store.errors import StoreError
from llmgw.store.jobs import DatabaseState, Job, rows_job
from llmgw.store.rows import Row
from llmgw.store.spool import Spool, SpoolFull

FIRST_RETRY = 0.25
RETRY_CEILING = 5.0
REPLAY_ROWS = 500


class Outage:
    """`error` is None while the database answers."""

    def __init__(self, database: Database, spool: Spool) -> None:
        self._database = database
        self._spool = spool
        self._delay = FIRST_RETRY
        self._retry_at = 0.0  # loop time
        self._timer: asyncio.TimerHandle | None = None
        self._spool_refuses = False
        self.error: StoreError | None = None
        self.spooled = 0
        self.lost = 0

    @property
    def state(self) -> DatabaseState:
        if self.error is None:
            return DatabaseState.OK
        return DatabaseState.DOWN if self._spool_refuses else DatabaseState.SPOOLING

    def begin(self, error: StoreError) -> None:
        self.error = error
        self._delay = FIRST_RETRY
        self._retry_at = asyncio.get_running_loop().time() + self._delay

    def wake_later(self, wake: asyncio.Event) -> None:
        """Wake the writer for its next try."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(self._retry_at, loop.time() + FIRST_RETRY), wake.set)

    async def look_for_leftovers(self) -> None:
        """At start: rows that a process before this one could not write."""
        try:
            await self._replay()
        except StoreError as error:
            self.begin(error)

    async def try_to_end(self) -> None:
        """Where it is time: write the spool, and if that worked the outage is over."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_at:
            return
        self._delay = min(self._delay * 2, RETRY_CEILING)
        try:
            await self._database.check()
            await self._replay()
        except StoreError as error:
            self.error = error
            self._retry_at = loop.time() + self._delay
        else:
            self.error = None
            self._spool_refuses = False

    async def settle(self, jobs: Sequence[Job], error: StoreError) -> None:
        """Rows go to disk; an operation learns that the database is away."""
        rows = [row for job in jobs for row in job.rows]
        kept = not rows or await self._keep(rows)
        for job in jobs:
            if job.rows and kept:
                job.succeed()
            else:
                job.fail(error)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._spool.close)

    async def _keep(self, rows: Sequence[Row]) -> bool:
        try:
            await asyncio.to_thread(self._spool.append, rows)
        except SpoolFull:
            self._spool_refuses = True
            self.lost += len(rows)
            return False
        self._spool_refuses = False
        self.spooled += len(rows)
        return True

    async def _replay(self) -> None:
        """In transactions of some rows each; cleared after the last, so all may come again."""
        if not await asyncio.to_thread(self._spool.adopt):
            return
        rows = self._spool.rows()
        while some := tuple(islice(rows, REPLAY_ROWS)):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            await commit(self._database, [rows_job(some, future)])
        await asyncio.to_thread(self._spool.clear)
        self.spooled = 0
