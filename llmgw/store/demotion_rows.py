"""Demotions as rows: the last word counts, and a row whose time is over says nothing."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.core.circuit import DemotionKey
from llmgw.core.types import AssignmentId, KeyId, PoolName
from llmgw.store.identity import digest, storable
from llmgw.store.inserts import insert_into
from llmgw.store.schema import DEMOTIONS
from llmgw.store.transaction import Transaction


async def demote(transaction: Transaction, key: DemotionKey, until: float | None) -> None:
    """None ends it; where there is none, nothing is written."""
    own = DEMOTIONS.c.id == digest(*key)
    connection = transaction.connection
    if until is None:
        found = await connection.execute(select(DEMOTIONS.c.id).where(own))
        if found.first() is not None:
            await transaction.next_version()
            await connection.execute(delete(DEMOTIONS).where(own))
        return
    await transaction.next_version()
    insert = insert_into(connection, DEMOTIONS).values(
        id=digest(*key),
        pool=key.pool,
        key_id=key.key,
        model=storable(key.model),
        assignment=key.assignment,
        until=until,
    )
    newest = insert.on_conflict_do_update(index_elements=["id"], set_={"until": until})
    await connection.execute(newest)


async def load_demotions(connection: AsyncConnection, *, now: float) -> dict[DemotionKey, float]:
    found = await connection.execute(select(DEMOTIONS).where(DEMOTIONS.c.until > now))
    return {
        DemotionKey(
            PoolName(row.pool),
            None if row.key_id is None else KeyId(row.key_id),
            row.model,
            AssignmentId(row.assignment),
        ): row.until
        for row in found
    }
