"""A group of jobs in one transaction; where one of them spoils it, each in its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llmgw.store.database import Database
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.jobs import Job, rows_job
from llmgw.store.transaction import Transaction

TRIES = 5  # against deadlocks, of which the database picks one victim each


async def commit(database: Database, group: Sequence[Job]) -> int:
    """Settle every job, and tell how many rows the database will never take.

    Raises `StoreError` for an outage; then jobs that are not settled are not written, or it is
    not known whether they are.
    """
    try:
        await _commit_together(database, group)
    except StoreError as error:
        if error.is_outage:
            raise
        return await _commit_apart(database, group, error)
    return 0


async def _commit_together(database: Database, group: Sequence[Job]) -> None:
    for attempt in range(1, TRIES + 1):
        try:
            async with database.write() as connection:
                transaction = Transaction(connection)
                for job in group:
                    await job.run(transaction)
                await transaction.flush()
            break
        except StoreError as error:
            if error.fault is not StoreFault.CONFLICT or attempt == TRIES:
                raise
    for job in group:
        job.succeed()


async def _commit_apart(database: Database, group: Sequence[Job], error: StoreError) -> int:
    """One job can't be carried out: it alone fails. Rows are halved down to the guilty one."""
    if len(group) > 1:
        return sum([await commit(database, [job]) for job in group])
    (job,) = group
    if len(job.rows) < 2:
        job.fail(error)
        return len(job.rows)
    middle = len(job.rows) // 2
    refused = 0
    for half in (job.rows[:middle], job.rows[middle:]):
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        refused += await commit(database, [rows_job(half, future)])
    job.succeed()
    return refused
