"""What a request costs the database, counted at the driver."""

import asyncio
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from llmgw.runtime.ports import Stores
from llmgw.runtime.tasks import Supervisor
from llmgw.store.store import open_store
from tests.builders import call, streaming
from tests.fakes.downstream import FakeDownstream
from tests.fakes.scene import DONE, HI, Scene, answers, streams

RESPONSE = b'{"id":"resp_1","object":"response"}'


@pytest.fixture
async def store(tmp_path):
    store = await open_store(f"sqlite:///{tmp_path}/a.db", state_dir=tmp_path, instance="gw1")
    yield store
    await store.close()


@pytest.fixture
async def working(store):
    """With the loops that carry reads and writes out."""
    supervisor = Supervisor()
    supervisor.loop("writer", store.writer.run)
    supervisor.loop("reader", store.reader.run)
    yield store
    await supervisor.stop()


@contextmanager
def statements(store):
    """The statements that reach the driver, but for the ends of transactions."""
    seen = []

    def note(connection, cursor, statement, *_):
        seen.append(statement)

    event.listen(store.database.engine.sync_engine, "before_cursor_execute", note)
    yield seen
    event.remove(store.database.engine.sync_engine, "before_cursor_execute", note)


def selects(seen) -> list[str]:
    return [one for one in seen if one.startswith("SELECT")]


def stores_of(store) -> Stores:
    return Stores(store.circuits, store.requests, store.pins, store.drains)


def responses(**members: str):
    more = "".join(f',"{name}":"{value}"' for name, value in members.items())
    return call(b'{"model":"m"%b}' % more.encode(), path="/v1/responses")


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        pytest.param(call(), answers, id="an answer"),
        pytest.param(streaming(), lambda: streams(HI, DONE), id="a stream"),
    ],
)
async def test_a_request_that_is_served_makes_no_statement_and_waits_for_none(store, made, answer):
    """Nobody carries anything out here: a request that waited would wait for ever."""
    scene = Scene(*(answer() for _ in range(50)), stores=stores_of(store))

    with statements(store) as seen:
        async with asyncio.timeout(5):
            for _ in range(50):
                scene.client = FakeDownstream()
                await scene.serves(made)

    assert seen == []
    assert scene.client.status == 200
    assert store.writer.status.waiting == 50  # a request and its attempt count as one


async def test_rows_are_written_in_batches(working):
    scene = Scene(*(answers() for _ in range(50)), stores=stores_of(working))
    with statements(working) as seen:
        for _ in range(50):
            scene.client = FakeDownstream()
            await scene.serves()
        await working.writer.flush()

    assert sum(one.startswith("INSERT INTO requests") for one in seen) <= 2
    assert selects(seen) == []


async def test_an_id_that_is_not_in_memory_costs_one_query_and_one_that_is_none(working):
    first = Scene(answers(RESPONSE), stores=stores_of(working))
    await first.serves(responses())
    second = Scene(answers(), answers(), stores=stores_of(working))

    with statements(working) as seen:
        await second.serves(responses(previous_response_id="resp_1"))
        assert len(selects(seen)) == 1
        second.client = FakeDownstream()
        await second.serves(responses(previous_response_id="resp_1"))

    assert len(selects(seen)) == 1
    assert second.upstreams.names == [first.upstreams.names[0]] * 2
