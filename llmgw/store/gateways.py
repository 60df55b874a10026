"""Which gateways live: each says so every 10 s, and any of them closes what a dead one left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select, update

from llmgw.core.failover import Outcome
from llmgw.store.identity import digest
from llmgw.store.inserts import insert_into
from llmgw.store.schema import GATEWAYS, REQUESTS
from llmgw.store.transaction import Transaction
from llmgw.store.writer import Writer

BEAT_EVERY = 10.0
SILENT_AFTER = 60.0


class Gateways:
    """This gateway among those that share the database."""

    def __init__(self, writer: Writer, *, instance: str, place: str, version: str) -> None:
        """`place` is the same over restarts: host and state folder. Kept as a hash."""
        self._writer = writer
        self._instance = instance
        self._place = digest(place)
        self._version = version

    def start(self, *, now: float, fresh: bool) -> asyncio.Future[int]:
        """`fresh`: not started by a gateway that is still at work, so whatever began at this
        place before is dead. Tells how many requests were closed for it."""

        async def write(transaction: Transaction) -> int:
            closed = 0
            if fresh:
                before = (GATEWAYS.c.place == self._place, GATEWAYS.c.instance != self._instance)
                closed = await self._bury(transaction, *before, now=now)
            await self._say(transaction, now)
            return closed

        return self._writer.submit(write)

    def beat(self, *, now: float) -> asyncio.Future[int]:
        """Live on, and close what gateways that are silent have left; how many requests."""

        async def write(transaction: Transaction) -> int:
            await self._say(transaction, now)
            return await self._bury(transaction, GATEWAYS.c.seen_at < now - SILENT_AFTER, now=now)

        return self._writer.submit(write)

    def stop(self) -> asyncio.Future[None]:
        """A clean end: everything this gateway served is written."""

        async def write(transaction: Transaction) -> None:
            own = delete(GATEWAYS).where(GATEWAYS.c.instance == self._instance)
            await transaction.connection.execute(own)

        return self._writer.submit(write)

    async def _say(self, transaction: Transaction, now: float) -> None:
        insert = insert_into(transaction.connection, GATEWAYS).values(
            instance=self._instance,
            place=self._place,
            version=self._version,
            started_at=now,
            seen_at=now,
        )
        newest = insert.on_conflict_do_update(index_elements=["instance"], set_={"seen_at": now})
        await transaction.connection.execute(newest)

    async def _bury(
        self, transaction: Transaction, *which: ColumnElement[bool], now: float
    ) -> int:
        found = await transaction.connection.execute(select(GATEWAYS.c.instance).where(*which))
        dead = found.scalars().all()
        if not dead:
            return 0
        closed = await self._close_requests(transaction, dead, now)
        gone = delete(GATEWAYS).where(GATEWAYS.c.instance.in_(dead), *which)
        await transaction.connection.execute(gone)
        return closed

    async def _close_requests(
        self, transaction: Transaction, dead: Sequence[str], now: float
    ) -> int:
        """Where its gateway lives after all, the final row replaces this one."""
        closed = (
            update(REQUESTS)
            .where(REQUESTS.c.instance.in_(dead), REQUESTS.c.ended_at.is_(None))
            .values(outcome=str(Outcome.CANCELLED), ended_at=now, closed_by=self._instance)
        )
        return (await transaction.connection.execute(closed)).rowcount
