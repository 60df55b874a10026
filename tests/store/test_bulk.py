"""The short way into SQLite writes what the general way writes."""

import asyncio
import threading
from contextlib import suppress

import pytest
from sqlalchemy import select

from llmgw.core.failover import Outcome
from llmgw.core.settle import Settlement
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.store import bulk as bulk_module
from llmgw.store.bulk_rows import Shared
from llmgw.store.jobs import DatabaseState
from llmgw.store.schema import ATTEMPTS, REQUESTS
from llmgw.store.settled import MAX_TOKENS, Client, Settled, rows_of
from llmgw.store.store import open_store
from tests.fakes.outages import outage
from tests.fakes.patience import until
from tests.fakes.settlements import scope, settled
from tests.store.conftest import running

ONE = "one"
CLIENT = Client("search", (("team", "find"), ("env", "prod")))
HANDED_ON = (Outcome.RETRYABLE_FAILED, Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED)


def kept(one: Settlement, client: Client = CLIENT) -> Settled:
    """As the writer keeps it."""
    return one.request, one.attempts, client, ONE


KINDS = {
    "one attempt": settled("r"),
    "handed on twice": settled("r", outcomes=HANDED_ON),
    "failed": settled("r", outcomes=(Outcome.FAILED,)),
    "no attempt": settled("r")._replace(attempts=()),
    "an odd model": settled("r", model="half \ud800\x00" + "x" * 1000),
    "no counts": settled("r", usage=UNKNOWN),
    "counts at the limit": settled("r", usage=Usage(MAX_TOKENS, MAX_TOKENS + 1, 2**70)),
    "open access": settled("r")._replace(request=settled("r").request._replace(key=None)),
}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/llmgw.db"


async def contents(store) -> list[list[tuple[object, ...]]]:
    await store.writer.flush()
    async with store.database.read() as connection:
        return [
            [tuple(row) for row in await connection.execute(select(table).order_by(*keys))]
            for table, *keys in (
                (REQUESTS, REQUESTS.c.id),
                (ATTEMPTS, ATTEMPTS.c.request_id, ATTEMPTS.c.ordinal),
            )
        ]


async def ids(store) -> list[str]:
    async with store.database.read() as connection:
        return list(await connection.scalars(select(REQUESTS.c.id).order_by(REQUESTS.c.id)))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("client", [CLIENT, Client()], ids=["with a key", "without"])
async def test_both_ways_write_the_same(url, tmp_path, name, client):
    async with running(url, tmp_path) as store:
        assert await store.database.write_settled([kept(KINDS[name], client)])
        short = await contents(store)
    (tmp_path / "llmgw.db").unlink()
    async with running(url, tmp_path) as store:
        store.writer.record(rows_of(kept(KINDS[name], client)))
        general = await contents(store)

    assert short == general
    assert len(short[0]) == 1


async def test_every_length_of_statement_and_every_likeness_in_one_batch(store_on_file):
    batch = [
        settled(f"r{n:04}", model=f"m{n % 7}", outcomes=HANDED_ON[n % 3 :]) for n in range(300)
    ]

    await store_on_file.database.write_settled([kept(one) for one in batch])

    requests, attempts = await contents(store_on_file)
    assert [(row[0], row[6]) for row in requests] == [
        (f"r{n:04}", f"m{n % 7}") for n in range(300)
    ]
    assert len(attempts) == sum(len(one.attempts) for one in batch)


async def test_a_statement_carries_many_rows(store_on_file):
    await store_on_file.database.write_settled([kept(settled("first"))])
    statements = []
    store_on_file.database._bulk._thread._open._connection.set_trace_callback(statements.append)

    batch = [kept(settled(f"r{n}")) for n in range(128 + 16 + 4 + 1)]
    await store_on_file.database.write_settled(batch)

    assert len(statements) == len(("BEGIN", *4 * ("requests", "attempts"), "COMMIT"))


async def test_what_requests_have_in_common_is_kept_once_and_not_for_ever(
    store_on_file, monkeypatch
):
    monkeypatch.setattr(bulk_module, "MAX_SHARED", 2)

    for n in range(9):
        store_on_file.requests.record(settled(f"r{n}", model=f"m{n % 3}"))
        await store_on_file.writer.flush()

    requests, _ = await contents(store_on_file)
    assert [row[6] for row in requests] == ["m0", "m1", "m2"] * 3
    assert len(store_on_file.database._bulk._thread._open._shared) <= 3


def test_a_part_is_new_once():
    shared = Shared()

    numbers = [
        shared.bulk_rows([kept(settled(f"r{n}", model=model))]).requests[1]
        for n, model in enumerate(["a", "b", "a"])
    ]

    assert numbers == [1, 2, 1]
    assert [part[0] for part in shared.take_new()] == [1, 2]
    assert shared.take_new() == []


async def test_a_repetition_changes_nothing(store_on_file):
    first = [kept(settled("r1", outcomes=HANDED_ON))]
    await store_on_file.database.write_settled(first)
    before = await contents(store_on_file)

    await store_on_file.database.write_settled(first)
    await store_on_file.database.write_settled([kept(settled("r1", model="other"))])

    assert await contents(store_on_file) == before


async def test_the_end_takes_the_place_of_the_open_row(store_on_file):
    store_on_file.requests.record_open(scope("r1"), started=1000.0, client=CLIENT)
    await store_on_file.writer.flush()

    store_on_file.requests.record(settled("r1", started=1000.0), CLIENT)

    requests, _ = await contents(store_on_file)
    assert requests == [rows_of(kept(settled("r1", started=1000.0)))[0].values]


async def test_an_open_row_that_comes_late_is_dropped(store_on_file):
    store_on_file.requests.record_open(scope("r1"), started=1000.0)
    store_on_file.requests.record(settled("r1"))

    requests, _ = await contents(store_on_file)
    assert requests[0][15] is not None


async def test_a_request_that_the_database_never_takes_costs_no_other(store_on_file):
    unfit = settled("unfit")._replace(request=settled("unfit").request._replace(pool=None))

    for one in (settled("r1"), unfit, settled("r2")):
        store_on_file.requests.record(one)
    await store_on_file.writer.flush()
    assert await ids(store_on_file) == ["r1", "r2"]
    store_on_file.requests.record(settled("r3"))

    await store_on_file.writer.flush()
    assert await ids(store_on_file) == ["r1", "r2", "r3"]
    assert store_on_file.writer.status.refused == 1
    assert store_on_file.writer.status.state is DatabaseState.OK


async def test_a_part_that_is_missing_loses_no_row(store_on_file):
    store_on_file.requests.record(settled("r1"))
    await store_on_file.writer.flush()
    store_on_file.database._bulk._thread._open._connection.execute("DELETE FROM temp.shared")

    store_on_file.requests.record(settled("r2"))

    await store_on_file.writer.flush()
    assert await ids(store_on_file) == ["r1", "r2"]


async def test_a_batch_that_is_given_up_is_written_once(url, tmp_path, monkeypatch):
    store = await open_store(url, state_dir=tmp_path, instance=ONE)
    begun, go_on, write = threading.Event(), threading.Event(), store.database._bulk._thread._run

    def held_up(batch):
        begun.set()
        go_on.wait()
        write(batch)

    monkeypatch.setattr(store.database._bulk._thread, "_run", held_up)
    for n in range(500):
        store.requests.record(settled(f"r{n:03}"))
    flush = asyncio.create_task(store.writer.flush())
    run = asyncio.create_task(store.writer.run())
    await until(begun.is_set)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    go_on.set()

    await store.writer.close()
    await flush

    assert await ids(store) == [f"r{n:03}" for n in range(500)]
    await store.close()


async def test_an_outage_is_told_once(store_on_file, url, monkeypatch):
    monkeypatch.setattr("llmgw.store.database.BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr("llmgw.store.outage.FIRST_RETRY", 0.02)
    general = []
    original = store_on_file.database.write
    store_on_file.database.write = lambda: general.append(1) or original()

    async with outage(url):
        store_on_file.requests.record(settled("r1"))
        await until(lambda: store_on_file.writer.status.state is not DatabaseState.OK)
        assert general == []
    await until(lambda: store_on_file.writer.status.state is DatabaseState.OK)

    await store_on_file.writer.flush()
    assert await ids(store_on_file) == ["r1"]


async def test_a_database_in_memory_goes_the_general_way(tmp_path):
    async with running("sqlite://", tmp_path) as store:
        store.requests.record(settled("r1"))

        assert not await store.database.write_settled([kept(settled("r2"))])
        await store.writer.flush()
        assert await ids(store) == ["r1"]


@pytest.fixture
async def store_on_file(url, tmp_path):
    async with running(url, tmp_path) as store:
        yield store
