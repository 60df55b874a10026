"""Which assignment made a response or keeps a file, for a day, within one pool."""

from __future__ import annotations

import asyncio

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.core.pins import PinKind as PinKind
from llmgw.core.types import AssignmentId, PoolName
from llmgw.store.identity import digest
from llmgw.store.reader import Reader
from llmgw.store.rows import Row, RowKind
from llmgw.store.schema import PINS
from llmgw.store.transaction import Transaction
from llmgw.store.writer import Writer

PINNED_FOR = 86400.0


class Pins:
    """Ids of upstreams are kept as hashes only."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    def put(
        self, pool: PoolName, kind: PinKind, id: str, assignment: AssignmentId, *, now: float
    ) -> asyncio.Future[None]:
        """Done when the group commit that carries it is, or when it is spooled."""
        values = (digest(pool, kind, id), assignment, now + PINNED_FOR)
        return self._writer.put((Row(RowKind.PIN, values),))

    def find(
        self, pool: PoolName, kind: PinKind, id: str, *, now: float
    ) -> asyncio.Future[AssignmentId | None]:
        """One query by the primary key."""
        own = PINS.c.id == digest(pool, kind, id)
        query = select(PINS.c.assignment).where(own, PINS.c.until > now)

        async def read(connection: AsyncConnection) -> AssignmentId | None:
            found = (await connection.execute(query)).scalar_one_or_none()
            return None if found is None else AssignmentId(found)

        return self._reader.fetch(read)

    def drop(self, pool: PoolName, kind: PinKind, id: str) -> asyncio.Future[None]:
        """The upstream has deleted what was pinned."""
        own = PINS.c.id == digest(pool, kind, id)

        async def write(transaction: Transaction) -> None:
            await transaction.connection.execute(delete(PINS).where(own))

        return self._writer.submit(write)
