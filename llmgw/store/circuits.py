"""Circuits and demotions that all gateways share: each change is one compare-and-set."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.core.circuit import Circuit, CircuitEvent, CircuitKey, DemotionKey, Leased
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes
from llmgw.store.circuit_rows import CircuitRows
from llmgw.store.demotion_rows import demote, load_demotions
from llmgw.store.glance import Glance
from llmgw.store.reader import Reader
from llmgw.store.schema import LEDGER
from llmgw.store.transaction import Transaction
from llmgw.store.writer import Writer

_NEWEST = Glance(select(LEDGER.c.version))


@dataclass(frozen=True, slots=True)
class View:
    """All circuits that are not blank and all demotions that last, as of one moment.

    A view whose `cursor` is smaller than that of a later own `Written` is to be dropped.
    """

    cursor: int
    circuits: Mapping[CircuitKey, Circuit]
    demotions: Mapping[DemotionKey, float]  # until


@dataclass(frozen=True, slots=True)
class Written:
    """What a change left behind: for each of its keys the row as it is now (blank: no row)."""

    cursor: int  # 0: nothing had to be written
    circuits: Mapping[CircuitKey, Circuit]
    demotions: Mapping[DemotionKey, float | None]


class Circuits:
    """What the gateways of one database know together of who serves what."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    def apply(
        self, changes: Changes, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]:
        """All of a settlement's changes in one transaction, in order."""

        async def write(transaction: Transaction) -> Written:
            rows = transaction.part(CircuitRows)
            circuits = {
                key: await rows.advance(key, events, now=now, config=config)
                for key, events in _by_key(changes).items()
            }
            demotions: dict[DemotionKey, float | None] = {}
            for one in changes.demotions:
                until = None if one.for_seconds is None else now + one.for_seconds
                await demote(transaction, one.key, until)
                demotions[one.key] = until
            return Written(transaction.version, circuits, demotions)

        return self._writer.submit(write)

    def transition(
        self, key: CircuitKey, event: CircuitEvent, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]:
        return self.apply(Changes(((key, event),)), now=now, config=config)

    async def lease(
        self, key: CircuitKey, owner: str, *, now: float, config: CircuitsConfig
    ) -> bool:
        """Take a probe slot. Whoever is cancelled here sends `Neutral(owner)`: it comes after."""
        written = await self.transition(key, Leased(owner), now=now, config=config)
        return written.circuits[key].holds(owner)

    async def load(self, *, now: float) -> View:
        async def read(connection: AsyncConnection) -> View:
            cursor = await _cursor(connection)  # first: rows may be newer, never older
            circuits = await CircuitRows.load(connection)
            return View(cursor, circuits, await load_demotions(connection, now=now))

        return await self._reader.read(read)

    async def changed_since(self, cursor: int, *, now: float) -> View | None:
        """None: no gateway has changed anything (one query of one row)."""
        ((newest,),) = await self._reader.glance(_NEWEST)
        if newest == cursor:
            return None
        return await self.load(now=now)

    def merge(
        self, local: Mapping[CircuitKey, Circuit], base: Mapping[CircuitKey, int]
    ) -> asyncio.Future[Written]:
        """After an outage: write each local circuit where the row still has the version that the
        local one began from (`base`; 0: there was no row); elsewhere the row wins."""

        async def write(transaction: Transaction) -> Written:
            rows = transaction.part(CircuitRows)
            circuits = {
                key: await rows.settle(key, circuit, base=base.get(key, 0))
                for key, circuit in local.items()
            }
            return Written(transaction.version, circuits, {})

        return self._writer.submit(write)


def _by_key(changes: Changes) -> dict[CircuitKey, list[CircuitEvent]]:
    found: dict[CircuitKey, list[CircuitEvent]] = {}
    for key, event in changes.circuits:
        found.setdefault(key, []).append(event)
    return found


async def _cursor(connection: AsyncConnection) -> int:
    return int((await connection.execute(_NEWEST.select)).scalar_one())
