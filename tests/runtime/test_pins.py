"""Ids and the assignments that they live at: in memory at once, in the database soon."""

import asyncio

import pytest

from llmgw.core.errors import Conflict
from llmgw.core.pins import PinKind, Resource
from llmgw.core.types import AssignmentId, PoolName
from llmgw.runtime import pins as module
from llmgw.runtime.pins import Keeper, Pins
from tests.fakes.clock import Clock
from tests.fakes.stores import AWAY, FakeDatabase

POOL, OTHER = PoolName("p"), PoolName("q")
A, B = AssignmentId("p/a"), AssignmentId("p/b")
RESPONSE, FILE = Resource(PinKind.RESPONSE, "resp_1"), Resource(PinKind.FILE, "file_1")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def database():
    return FakeDatabase()


@pytest.fixture
def pins(database, clock):
    return Pins(database.pins, wall=clock)


async def test_an_id_is_known_at_every_gateway_of_the_database_and_to_its_pool_alone(
    pins, database, clock
):
    await pins.keep(POOL, RESPONSE, A)
    elsewhere = Pins(database.pins, wall=clock)

    assert await elsewhere.find(POOL, RESPONSE) == A
    assert await elsewhere.find(OTHER, RESPONSE) is None
    assert await elsewhere.find(POOL, Resource(PinKind.FILE, RESPONSE.id)) is None


async def test_an_id_in_memory_costs_no_query_and_another_one_costs_one(pins, database):
    await pins.keep(POOL, RESPONSE, A)
    calls = database.door.calls

    assert await pins.find(POOL, RESPONSE) == A
    assert database.door.calls == calls
    assert await pins.find(POOL, FILE) is None
    assert database.door.calls == calls + 1


async def test_what_the_database_told_is_remembered(pins, database):
    database.pins.rows[POOL, PinKind.FILE, "file_1"] = B
    await pins.find(POOL, FILE)
    calls = database.door.calls

    assert await pins.find(POOL, FILE) == B
    assert database.door.calls == calls


async def test_nobody_waits_long_for_a_pin_and_it_counts_all_the_same(pins, database, monkeypatch):
    monkeypatch.setattr(module, "WRITTEN_WITHIN", 0.001)
    database.door.hangs = True

    await pins.keep(POOL, RESPONSE, A)

    assert await pins.find(POOL, RESPONSE) == A
    database.door.release()
    assert database.pins.rows == {(POOL, PinKind.RESPONSE, "resp_1"): A}


async def test_while_the_database_is_away_memory_answers(pins, database):
    await pins.keep(POOL, RESPONSE, A)
    database.door.error = AWAY

    await pins.keep(POOL, FILE, B)

    assert await pins.find(POOL, RESPONSE) == A
    assert await pins.find(POOL, FILE) == B
    assert await pins.find(POOL, Resource(PinKind.FILE, "unknown")) is None


async def test_a_look_up_that_hangs_is_given_up(pins, database, monkeypatch):
    monkeypatch.setattr(module, "FOUND_WITHIN", 0.001)
    database.door.hangs = True

    assert await pins.find(POOL, RESPONSE) is None


async def test_a_pin_is_forgotten_after_a_day(pins, database, clock):
    await pins.keep(POOL, RESPONSE, A)
    database.pins.rows.clear()

    clock.advance(module.PINNED_FOR)

    assert await pins.find(POOL, RESPONSE) is None


async def test_memory_is_bounded_and_the_oldest_goes_first(pins, monkeypatch, database):
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    for name in ("one", "two", "three"):
        await pins.keep(POOL, Resource(PinKind.FILE, name), A)
    calls = database.door.calls

    await pins.find(POOL, Resource(PinKind.FILE, "two"))
    assert (len(pins), database.door.calls) == (2, calls)
    await pins.find(POOL, Resource(PinKind.FILE, "one"))
    assert database.door.calls == calls + 1


async def test_a_request_goes_where_all_that_it_names_is(pins):
    await pins.keep(POOL, RESPONSE, A)
    assert await pins.choose(POOL, (RESPONSE, FILE)) == A

    await pins.keep(POOL, FILE, B)

    with pytest.raises(Conflict):
        await pins.choose(POOL, (RESPONSE, FILE))


async def test_the_keeper_pins_what_an_answer_names(pins):
    keeper = Keeper(pins, POOL, PinKind.RESPONSE)

    await keeper.answered(A, b'{"id":"resp_1"}')
    await keeper.answered(A, b"{}")

    assert await pins.find(POOL, RESPONSE) == A
    assert len(pins) == 1


async def test_the_keeper_pins_a_stream_from_its_first_events_without_waiting(pins, database):
    database.door.hangs = True
    keeper = Keeper(pins, POOL, PinKind.RESPONSE)

    keeper.streaming(B, b'data: {"type":"response.created","response":{"id":"resp_1"}}\n\n')
    keeper.streaming(B, b"data: {}\n\n")

    assert await pins.find(POOL, RESPONSE) == B
    assert len(pins) == 1
    await asyncio.sleep(0)
