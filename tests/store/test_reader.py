"""Reads for handlers."""

import asyncio
from contextlib import suppress

import pytest
from sqlalchemy import select

from llmgw.store import reader as reader_module
from llmgw.store.database import connect
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.reader import Reader
from llmgw.store.schema import LEDGER
from tests.fakes.outages import outage

VERSION = select(LEDGER.c.version)


async def version(connection) -> int:
    return (await connection.execute(VERSION)).scalar_one()


@pytest.fixture
async def reader(url):
    database = connect(url)
    reader = Reader(database)
    task = asyncio.create_task(reader.run())
    yield reader
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await database.close()


async def test_reads_are_served_in_turn(reader):
    assert await asyncio.gather(*(reader.fetch(version) for _ in range(20))) == [0] * 20


async def test_a_failed_read_is_told_and_costs_no_other(reader):
    async def broken(connection):
        raise StoreError(StoreFault.OTHER)

    failed, fine = reader.fetch(broken), reader.fetch(version)

    with pytest.raises(StoreError):
        await failed
    assert await fine == 0


async def test_a_read_that_nobody_waits_for_is_not_made(reader):
    made = []

    async def noted(connection):
        made.append(1)

    reader.fetch(noted).cancel()

    await reader.fetch(version)
    assert made == []


async def test_too_many_reads_are_refused(reader, monkeypatch):
    monkeypatch.setattr(reader_module, "MAX_WAITING", 2)
    reads = [reader.fetch(version) for _ in range(3)]

    with pytest.raises(StoreError, match="too many reads wait"):
        await reads[2]
    assert await reads[1] == 0


async def test_a_connection_lost_between_two_reads_is_not_noticed(reader, url):
    await reader.fetch(version)
    async with outage(url):
        pass

    assert await reader.fetch(version) == 0


async def test_who_waits_while_the_reader_is_stopped_is_told(url):
    database = connect(url)
    reader = Reader(database)
    started = asyncio.Event()

    async def endless(connection):
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(reader.run())
    waiting = reader.fetch(endless)
    await started.wait()
    task.cancel()

    with pytest.raises(StoreError):
        await waiting
    with suppress(asyncio.CancelledError):
        await task
    await database.close()
