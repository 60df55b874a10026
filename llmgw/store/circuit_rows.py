"""Circuits as rows. A row is read, decided on, and written only if it is still the one read.

Events of many requests on one circuit that share a transaction cost one read and one write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.core.circuit import (
    CLOSED,
    Circuit,
    CircuitEvent,
    CircuitKey,
    CircuitState,
    Lease,
    advance,
)
from llmgw.core.config import CircuitsConfig
from llmgw.core.types import AssignmentId, PoolName, RouteClass
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.identity import digest, storable
from llmgw.store.inserts import insert_into
from llmgw.store.schema import CIRCUITS
from llmgw.store.transaction import Transaction


class CircuitRows:
    """The circuits' table inside one transaction: each row is read once and written once."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._connection = transaction.connection
        self._read: dict[CircuitKey, Circuit] = {}
        self._changed: dict[CircuitKey, Circuit] = {}

    async def advance(
        self,
        key: CircuitKey,
        events: Sequence[CircuitEvent],
        *,
        now: float,
        config: CircuitsConfig,
    ) -> Circuit:
        """The circuit after the events; where they change nothing, nothing is written."""

        def after(before: Circuit) -> Circuit:
            circuit = before
            for event in events:
                circuit = advance(circuit, event, now=now, config=config)
            return circuit

        return await self._change(key, after)

    async def settle(self, key: CircuitKey, circuit: Circuit, *, base: int) -> Circuit:
        """Write what was decided on elsewhere, unless the row is not the one it began from."""
        return await self._change(key, lambda row: circuit if row.version == base else row)

    async def flush(self) -> None:
        for key, after in self._changed.items():
            if not await self._write(key, after, over=self._read[key].version):
                raise StoreError(StoreFault.CONFLICT)

    @staticmethod
    async def load(connection: AsyncConnection) -> dict[CircuitKey, Circuit]:
        found = await connection.execute(select(CIRCUITS))
        return {_key_of(row): _circuit_of(row) for row in found}

    async def _change(self, key: CircuitKey, after: Callable[[Circuit], Circuit]) -> Circuit:
        """Decided on again where others could still write while the row was read."""
        before, decided, was_alone = await self._decide(key, after)
        if decided is before:
            return before
        version = await self._transaction.next_version()
        if not was_alone:
            self._read.clear()
            before, decided, _ = await self._decide(key, after)
            if decided is before:
                return before
        self._changed[key] = CLOSED if decided.is_blank else replace(decided, version=version)
        return self._changed[key]

    async def _decide(
        self, key: CircuitKey, after: Callable[[Circuit], Circuit]
    ) -> tuple[Circuit, Circuit, bool]:
        was_alone = self._transaction.is_alone
        before = await self._current(key)
        decided = after(before)
        unchanged = replace(decided, version=before.version) == before
        return before, before if unchanged else decided, was_alone

    async def _current(self, key: CircuitKey) -> Circuit:
        if key in self._changed:
            return self._changed[key]
        if key not in self._read:
            query = select(CIRCUITS).where(CIRCUITS.c.id == digest(*key))
            row = (await self._connection.execute(query)).first()
            self._read[key] = CLOSED if row is None else _circuit_of(row)
        return self._read[key]

    async def _write(self, key: CircuitKey, after: Circuit, *, over: int) -> bool:
        """Whether the row was still the one of version `over` (0: no row)."""
        if after.is_blank and over == 0:
            return True
        same = (CIRCUITS.c.id == digest(*key), CIRCUITS.c.version == over)
        columns = _columns(after)
        if after.is_blank:
            done = await self._connection.execute(delete(CIRCUITS).where(*same))
        elif over == 0:
            insert = insert_into(self._connection, CIRCUITS).values(**_names(key), **columns)
            done = await self._connection.execute(insert.on_conflict_do_nothing())
        else:
            done = await self._connection.execute(update(CIRCUITS).where(*same).values(columns))
        return done.rowcount == 1


def _names(key: CircuitKey) -> dict[str, str]:
    return {
        "id": digest(*key),
        "pool": key.pool,
        "assignment": key.assignment,
        "model": storable(key.model),
        "route_class": str(key.lane),
    }


def _columns(circuit: Circuit) -> dict[str, Any]:
    return {
        "state": str(circuit.state),
        "failures": circuit.failures,
        "openings": circuit.openings,
        "open_until": circuit.open_until,
        "successes": circuit.successes,
        "leases": json.dumps([(lease.owner, lease.taken_at) for lease in circuit.leases]),
        "reason": storable(circuit.reason),
        "version": circuit.version,
    }


def _key_of(row: Row[Any]) -> CircuitKey:
    return CircuitKey(
        PoolName(row.pool),
        AssignmentId(row.assignment),
        row.model,
        RouteClass(row.route_class),
    )


def _circuit_of(row: Row[Any]) -> Circuit:
    return Circuit(
        state=CircuitState(row.state),
        failures=row.failures,
        openings=row.openings,
        open_until=row.open_until,
        successes=row.successes,
        leases=tuple(Lease(owner, taken_at) for owner, taken_at in json.loads(row.leases)),
        reason=row.reason,
        version=row.version,
    )
