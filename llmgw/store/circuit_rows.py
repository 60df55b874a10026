"""Circuits as rows. A row is read, decided on, and written only if it is still the one read."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

TRIES = 3  # the second one holds the ledger's lock, so nobody comes between


class CircuitRows:
    """The circuits' table inside one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._connection = transaction.connection

    async def advance(
        self,
        key: CircuitKey,
        events: Sequence[CircuitEvent],
        *,
        now: float,
        config: CircuitsConfig,
    ) -> Circuit:
        """The circuit after the events; where they change nothing, nothing is written."""
        for _ in range(TRIES):
            before = await self._read(key)
            after = before
            for event in events:
                after = advance(after, event, now=now, config=config)
            if replace(after, version=before.version) == before:
                return before
            written = await self._write(key, after, over=before.version)
            if written is not None:
                return written
        raise StoreError(StoreFault.CONFLICT)

    async def settle(self, key: CircuitKey, circuit: Circuit, *, base: int) -> Circuit:
        """Write what was decided on elsewhere, unless the row is not the one it began from."""
        before = await self._read(key)
        if before.version == base and replace(circuit, version=base) != before:
            written = await self._write(key, circuit, over=base)
            return await self._read(key) if written is None else written
        return before

    @staticmethod
    async def load(connection: AsyncConnection) -> dict[CircuitKey, Circuit]:
        found = await connection.execute(select(CIRCUITS))
        return {_key_of(row): _circuit_of(row) for row in found}

    async def _read(self, key: CircuitKey) -> Circuit:
        query = select(CIRCUITS).where(CIRCUITS.c.id == digest(*key))
        row = (await self._connection.execute(query)).first()
        return CLOSED if row is None else _circuit_of(row)

    async def _write(self, key: CircuitKey, after: Circuit, *, over: int) -> Circuit | None:
        """None: the row is not the one of version `over` (0: no row) any more."""
        if after.is_blank and over == 0:
            return CLOSED
        version = await self._transaction.next_version()
        same = (CIRCUITS.c.id == digest(*key), CIRCUITS.c.version == over)
        columns = _columns(after, version)
        if after.is_blank:
            done = await self._connection.execute(delete(CIRCUITS).where(*same))
        elif over == 0:
            insert = insert_into(self._connection, CIRCUITS).values(**_names(key), **columns)
            done = await self._connection.execute(insert.on_conflict_do_nothing())
        else:
            done = await self._connection.execute(update(CIRCUITS).where(*same).values(columns))
        if done.rowcount != 1:
            return None
        return CLOSED if after.is_blank else replace(after, version=version)


def _names(key: CircuitKey) -> dict[str, str]:
    return {
        "id": digest(*key),
        "pool": key.pool,
        "assignment": key.assignment,
        "model": storable(key.model),
        "route_class": str(key.lane),
    }


def _columns(circuit: Circuit, version: int) -> dict[str, Any]:
    return {
        "state": str(circuit.state),
        "failures": circuit.failures,
        "openings": circuit.openings,
        "open_until": circuit.open_until,
        "successes": circuit.successes,
        "leases": json.dumps([(lease.owner, lease.taken_at) for lease in circuit.leases]),
        "reason": storable(circuit.reason),
        "version": version,
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
