"""A question of one statement gets the same answer with a thread of its own and without."""

import pytest
from sqlalchemy import bindparam, select, text

from llmgw.store.errors import StoreError
from llmgw.store.glance import Glance
from llmgw.store.reader import Reader
from llmgw.store.schema import DRAINS
from llmgw.store.store import open_database

LATER = Glance(
    select(DRAINS.c.node, DRAINS.c.until)
    .where(DRAINS.c.until > bindparam("now"))
    .order_by(DRAINS.c.node)
)


@pytest.fixture(params=["a file", "in memory"])
async def database(request, tmp_path):
    url = "sqlite://" if request.param == "in memory" else f"sqlite:///{tmp_path}/llmgw.db"
    opened = await open_database(url)
    async with opened.write() as connection:
        for node, until in (("a", 10.0), ("b", 20.0), ("c", 30.0)):
            await connection.execute(DRAINS.insert().values(node=node, since=1.0, until=until))
    yield opened
    await opened.close()


async def test_its_values_are_bound_anew_each_time(database):
    answers = [
        [tuple(row) for row in await Reader(database).glance(LATER, now=now)]
        for now in (25.0, 15.0, 99.0)
    ]

    assert answers == [[("c", 30.0)], [("b", 20.0), ("c", 30.0)], []]


async def test_it_sees_what_was_just_written(database):
    async with database.write() as connection:
        await connection.execute(DRAINS.delete())

    assert await Reader(database).glance(LATER, now=0.0) == []


async def test_a_fault_is_told_as_the_store_s_own_and_is_not_the_last_answer(database):
    async with database.write() as connection:
        await connection.execute(text("ALTER TABLE drains RENAME TO elsewhere"))
    with pytest.raises(StoreError):
        await Reader(database).glance(LATER, now=0.0)
    async with database.write() as connection:
        await connection.execute(text("ALTER TABLE elsewhere RENAME TO drains"))

    assert len(await Reader(database).glance(LATER, now=0.0)) == 3
