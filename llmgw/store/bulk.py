"""The short way into SQLite for settled requests: a batch is one call into one thread.

What binding a value costs is most of what a row costs (0.1 us each, of 28 for a request and its
attempt), so what requests have in common is bound once: it has a number in a table of this
connection's own, and many rows go in with one statement. Whatever goes wrong here is told and
left to the general way, which writes the same rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from llmgw.store.bulk_rows import (
    LAST_ATTEMPT,
    REQUEST,
    SHARED,
    Shared,
    Target,
    statement,
)
from llmgw.store.inserts import sqlite_insert
from llmgw.store.own_thread import OwnThread
from llmgw.store.rows import Value
from llmgw.store.settled import Settled

ROWS_AT_ONCE = (128, 16, 4, 1)  # few lengths of statements, so that all stay prepared
MAX_SHARED = 10_000

_MAKE_SHARED = f"CREATE TEMPORARY TABLE shared (number INTEGER PRIMARY KEY, {', '.join(SHARED)})"
_ADD_SHARED = f"INSERT INTO temp.shared VALUES (?{', ?' * len(SHARED)})"  # noqa: S608


class Bulk:
    """Batches one after another."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._thread = OwnThread(lambda: _Connection(connect()), "llmgw-bulk")
        self.close = self._thread.close

    async def write(self, batch: Sequence[Settled]) -> None:
        """Committed when this returns. Cancelled, it goes on, and may be repeated."""
        await self._thread.run(lambda connection: connection.write(batch))


class _Connection:
    """A connection of the thread's and what its table of shared parts holds."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._shared = Shared()
        self.close = connection.close
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(_MAKE_SHARED)

    def write(self, batch: Sequence[Settled]) -> None:
        if len(self._shared) > MAX_SHARED:
            self._connection.execute("DELETE FROM temp.shared")
            self._shared = Shared()
        rows = self._shared.bulk_rows(batch)
        # outside of the transaction: a rollback must not take back what `_shared` counts on
        self._connection.executemany(_ADD_SHARED, self._shared.take_new())
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(REQUEST, rows.requests)
        self._insert(LAST_ATTEMPT, rows.last_attempts)
        for row in rows.others:
            self._connection.execute(sqlite_insert(row.kind), row.values)
        self._connection.execute("COMMIT")

    def _insert(self, target: Target, values: list[Value]) -> None:
        at = 0
        for rows in ROWS_AT_ONCE:
            step = rows * target.width
            while at + step <= len(values):
                self._connection.execute(statement(target, rows), values[at : at + step])
                at += step
