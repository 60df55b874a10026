"""Engines and their transactions."""

import asyncio

import pytest
from sqlalchemy import select, text, update

from llmgw.store.database import connect
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.schema import LEDGER
from llmgw.store.store import open_database
from tests.fakes.patience import WITHIN


@pytest.fixture
async def database(url):
    database = await open_database(url)
    yield database
    await database.close()


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("sqlite:////var/lib/llmgw.db", "sqlite+aiosqlite"),
        ("postgresql://host/name", "postgresql+asyncpg"),
        ("postgres://host/name", "postgresql+asyncpg"),
    ],
)
async def test_the_driver_is_one_for_asyncio(url, driver):
    database = connect(url)

    assert database.engine.url.drivername == driver
    await database.close()


async def test_sqlite_is_set_up(tmp_path):
    database = connect(f"sqlite:///{tmp_path}/llmgw.db")
    async with database.read() as connection:
        found = [
            (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        ]
    await database.close()

    assert found == ["wal", 1, 5000, 1]


async def test_a_read_waits_for_no_writer(database):
    async with database.write() as writing:
        await writing.execute(update(LEDGER).values(version=7))
        async with asyncio.timeout(WITHIN), database.read() as reading:
            seen = (await reading.execute(select(LEDGER.c.version))).scalar_one()

    assert seen == 0


async def test_read_modify_writes_side_by_side_lose_nothing(tmp_path):
    """With the driver's own transactions these lose updates, or fail at their upgrade."""
    databases = [await open_database(f"sqlite:///{tmp_path}/llmgw.db") for _ in range(4)]

    async def grow(number: int) -> None:
        async with databases[number % 4].write() as connection:
            found = (await connection.execute(select(LEDGER.c.version))).scalar_one()
            await asyncio.sleep(0)
            await connection.execute(update(LEDGER).values(version=found + 1))

    await asyncio.gather(*map(grow, range(40)))
    async with databases[0].read() as connection:
        assert (await connection.execute(select(LEDGER.c.version))).scalar_one() == 40
    for database in databases:
        await database.close()


async def test_a_failed_block_leaves_nothing(database):
    async def fail() -> None:
        async with database.write() as connection:
            await connection.execute(update(LEDGER).values(version=7))
            await connection.execute(text("SELECT nothing FROM nowhere"))

    with pytest.raises(StoreError) as caught:
        await fail()

    assert caught.value.fault is StoreFault.OTHER
    async with database.read() as connection:
        assert (await connection.execute(select(LEDGER.c.version))).scalar_one() == 0


async def test_a_database_in_memory_is_one_for_all_and_survives_a_cancelled_reader():
    database = await open_database("sqlite://")
    other = await open_database("sqlite://")

    async def read() -> int:
        async with database.read() as connection:
            return (await connection.execute(select(LEDGER.c.version))).scalar_one()

    async with database.write() as connection:
        await connection.execute(update(LEDGER).values(version=7))
    left = asyncio.create_task(read())
    await asyncio.sleep(0)  # it has the connection, which goes with it
    left.cancel()
    await asyncio.wait([left])

    assert await asyncio.gather(read(), read(), read()) == [7, 7, 7]
    async with other.read() as connection:
        assert (await connection.execute(select(LEDGER.c.version))).scalar_one() == 0
    await database.close()
    await other.close()
