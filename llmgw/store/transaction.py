"""One transaction of the writer's, and the version that marks what it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar, cast

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.store.inserts import insert_rows
from llmgw.store.rows import Row, RowKind, Value
from llmgw.store.schema import LEDGER


class Part(Protocol):
    """What one transaction remembers of a table, over all of its operations."""

    def __init__(self, transaction: Transaction) -> None: ...

    async def flush(self) -> None:
        """Write what was decided on; the commit comes next."""


P = TypeVar("P", bound=Part)


class Transaction:
    """What operations of one group share. They read before they write, and whatever routes is
    written only after `next_version`: from then on no other gateway writes such rows.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self._version: int | None = None
        self._parts: dict[type[Part], Part] = {}

    @property
    def version(self) -> int:
        """Of what this transaction has changed; 0: nothing that routes."""
        return self._version or 0

    @property
    def is_alone(self) -> bool:
        """Nobody else can change what routes; SQLite has one writer from the start."""
        return self._version is not None or self.connection.dialect.name == "sqlite"

    async def next_version(self) -> int:
        """A number that no row has had before; the same one for the whole transaction.

        Taking it locks the ledger till the commit, so versions become visible in their order.
        """
        if self._version is None:
            grown = update(LEDGER).values(version=LEDGER.c.version + 1)
            result = await self.connection.execute(grown.returning(LEDGER.c.version))
            self._version = int(result.scalar_one())
        return self._version

    def part(self, kind: type[P]) -> P:
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast(P, self._parts[kind])

    async def insert(self, rows: Iterable[Row]) -> None:
        """All of one kind in one go, open requests before final ones."""
        kinds: dict[RowKind, list[tuple[Value, ...]]] = {kind: [] for kind in RowKind}
        for row in rows:
            kinds[row.kind].append(row.values)
        for kind, values in kinds.items():
            if values:
                await insert_rows(self.connection, kind, values)

    async def flush(self) -> None:
        for part in self._parts.values():
            await part.flush()
