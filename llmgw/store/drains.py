"""Nodes that get no new work, said once for every gateway of the database."""

from __future__ import annotations

import asyncio

from sqlalchemy import bindparam, delete, or_, select

from llmgw.core.types import UpstreamName
from llmgw.store.glance import Glance
from llmgw.store.inserts import insert_into
from llmgw.store.reader import Reader
from llmgw.store.schema import DRAINS
from llmgw.store.transaction import Transaction
from llmgw.store.writer import Writer

FOREVER = float("inf")

_LASTING = Glance(
    select(DRAINS.c.node, DRAINS.c.until).where(
        or_(DRAINS.c.until.is_(None), DRAINS.c.until > bindparam("now"))
    )
)


class Drains:
    """The rows that `llmgw drain` writes and every gateway reads."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    def begin(
        self, node: UpstreamName, *, now: float, for_seconds: float | None
    ) -> asyncio.Future[None]:
        """None: until it is ended. A later word replaces an earlier one."""
        until = None if for_seconds is None else now + for_seconds

        async def write(transaction: Transaction) -> None:
            insert = insert_into(transaction.connection, DRAINS)
            row = insert.values(node=node, since=now, until=until)
            newest = row.on_conflict_do_update(
                index_elements=["node"], set_={"since": now, "until": until}
            )
            await transaction.connection.execute(newest)

        return self._writer.submit(write)

    def end(self, node: UpstreamName) -> asyncio.Future[bool]:
        """Whether there was one."""

        async def write(transaction: Transaction) -> bool:
            gone = delete(DRAINS).where(DRAINS.c.node == node)
            return (await transaction.connection.execute(gone)).rowcount > 0

        return self._writer.submit(write)

    async def current(self, *, now: float) -> dict[UpstreamName, float]:
        """Until when each node is drained."""
        found = await self._reader.glance(_LASTING, now=now)
        return {UpstreamName(node): FOREVER if until is None else until for node, until in found}
