"""Pins to the assignment that made a response or keeps a file."""

import asyncio

import pytest
from sqlalchemy import text

from llmgw.core.types import AssignmentId, PoolName
from llmgw.store.pins import PINNED_FOR, PinKind
from tests.fakes.statements import counted_statements
from tests.store.conftest import running

BLUE, RED = PoolName("blue"), PoolName("red")
A = AssignmentId("blue/a")
B = AssignmentId("blue/b")


@pytest.fixture
async def pins(store):
    await store.pins.put(BLUE, PinKind.RESPONSE, "resp_secret", A, now=100.0)
    return store.pins


@pytest.mark.parametrize(
    ("pool", "kind", "id", "now", "found"),
    [
        pytest.param(BLUE, PinKind.RESPONSE, "resp_secret", 101.0, A, id="as it was put"),
        pytest.param(RED, PinKind.RESPONSE, "resp_secret", 101.0, None, id="another pool"),
        pytest.param(BLUE, PinKind.FILE, "resp_secret", 101.0, None, id="another kind"),
        pytest.param(BLUE, PinKind.RESPONSE, "resp_other", 101.0, None, id="another id"),
        pytest.param(
            BLUE, PinKind.RESPONSE, "resp_secret", 100.0 + PINNED_FOR, None, id="a day later"
        ),
    ],
)
async def test_a_pin_is_found(pins, pool, kind, id, now, found):
    assert await pins.find(pool, kind, id, now=now) == found


async def test_it_is_found_by_another_gateway(pins, url, tmp_path):
    async with running(url, tmp_path, "two") as two:
        assert await two.pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0) == A


async def test_a_look_up_is_one_query(store, pins):
    with counted_statements(store.database) as statements:
        await pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0)

    assert len(statements) == 1


async def test_the_id_itself_is_not_kept(store, pins):
    async with store.database.read() as connection:
        rows = (await connection.execute(text("SELECT * FROM pins"))).all()

    assert len(rows) == 1
    assert "resp_secret" not in repr(rows)


async def test_a_later_pin_replaces_an_earlier_one_and_not_the_other_way_round(pins):
    await pins.put(BLUE, PinKind.RESPONSE, "resp_secret", B, now=200.0)
    await pins.put(BLUE, PinKind.RESPONSE, "resp_secret", A, now=100.0)

    assert await pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=201.0) == B


async def test_a_dropped_pin_is_gone(pins):
    await pins.drop(BLUE, PinKind.RESPONSE, "resp_secret")

    assert await pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0) is None


async def test_a_reader_that_leaves_costs_no_other(pins):
    left = pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0)
    started = pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0)
    left.cancel()
    await asyncio.sleep(0)
    started.cancel()

    assert await pins.find(BLUE, PinKind.RESPONSE, "resp_secret", now=101.0) == A
