"""What is too old goes, some rows at a time, so that no write waits long for it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, delete, select, tuple_

from llmgw.store.jobs import Operation
from llmgw.store.schema import ATTEMPTS, DEMOTIONS, DRAINS, PINS, REQUESTS
from llmgw.store.transaction import Transaction
from llmgw.store.writer import Writer

BATCH = 500
MOST_BATCHES = 2000  # of one round; the next one goes on


class Retention:
    """Deletes through the writer, as everything else is written."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def sweep(self, *, now: float, keep: float) -> int:
        """Requests that began `keep` seconds ago, and rows whose time is over; how many."""
        ends = (
            (ATTEMPTS, ATTEMPTS.c.started_at, now - keep),
            (REQUESTS, REQUESTS.c.started_at, now - keep),
            (PINS, PINS.c.until, now),
            (DEMOTIONS, DEMOTIONS.c.until, now),
            (DRAINS, DRAINS.c.until, now),
        )
        return sum([await self._sweep(*one) for one in ends])

    async def _sweep(self, table: Table, time: ColumnElement[float], before: float) -> int:
        total = 0
        for _ in range(MOST_BATCHES):
            gone = await self._writer.submit(_deletion(table, time, before))
            total += gone
            if gone < BATCH:
                break
        return total


def _deletion(table: Table, time: ColumnElement[float], before: float) -> Operation[int]:
    """One batch: found by the time's index, deleted by the primary key."""
    key = tuple_(*table.primary_key.columns)
    old = select(*table.primary_key.columns).where(time < before).order_by(time).limit(BATCH)
    statement = delete(table).where(key.in_(old))

    async def write(transaction: Transaction) -> int:
        return (await transaction.connection.execute(statement)).rowcount

    return write
