"""The one task that writes."""

import asyncio
from contextlib import suppress

import pytest
from sqlalchemy import func, select

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import CircuitsConfig
from llmgw.core.types import AssignmentId, PoolName, RouteClass
from llmgw.store import writer as writer_module
from llmgw.store.errors import StoreError
from llmgw.store.jobs import DatabaseState
from llmgw.store.pins import PinKind
from llmgw.store.rows import Row, RowKind
from llmgw.store.schema import ATTEMPTS, PINS, REQUESTS
from llmgw.store.store import open_store
from tests.fakes.outages import outage
from tests.fakes.patience import until
from tests.fakes.settlements import POOL, settled
from tests.fakes.statements import counted_statements
from tests.store.conftest import running

KEY = CircuitKey(PoolName("blue"), AssignmentId("blue/a"), "llama", RouteClass.SSE)
CONFIG = CircuitsConfig()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("llmgw.store.database.BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr("llmgw.store.outage.FIRST_RETRY", 0.02)
    monkeypatch.setattr("llmgw.store.outage.RETRY_CEILING", 0.05)


async def count(store, table) -> int:
    async with store.database.read() as connection:
        return (await connection.execute(select(func.count()).select_from(table))).scalar_one()


async def reached(state: DatabaseState, store) -> None:
    await until(lambda: store.writer.status.state is state)


def pin(name: str, assignment: str = "blue/a") -> Row:
    return Row(RowKind.PIN, (name, assignment, 5000.0))


async def test_rows_wait_for_their_batch(store, monkeypatch):
    monkeypatch.setattr(writer_module, "BATCH_EVERY", 3600)
    with counted_statements(store.database) as statements:
        for number in range(20):
            store.requests.record(settled(f"r{number}"))
        await asyncio.sleep(0.05)
        before = list(statements)
        await store.writer.flush()

    assert before == []
    assert await count(store, REQUESTS) == 20


async def test_a_batch_is_written_without_being_asked_for(store, monkeypatch):
    monkeypatch.setattr(writer_module, "BATCH_EVERY", 0.01)

    store.requests.record(settled())
    await until(lambda: store.writer.status.waiting == 0)

    assert await count(store, REQUESTS) == 1


async def test_many_rows_do_not_wait_for_the_time_but_the_few_behind_them_do(store, monkeypatch):
    monkeypatch.setattr(writer_module, "BATCH_EVERY", 3600)

    store.writer.record(pin(f"p{n}") for n in range(writer_module.BATCH_ROWS + 1))
    await until(lambda: store.writer.status.waiting == 1)

    assert await count(store, PINS) == writer_module.BATCH_ROWS
    await store.writer.flush()
    assert await count(store, PINS) == writer_module.BATCH_ROWS + 1


async def test_operations_and_pins_do_not_wait(store):
    async with asyncio.timeout(5):
        await asyncio.gather(
            store.writer.put([pin("now")]),
            store.circuits.transition(KEY, Failed("x"), now=1.0, config=CONFIG),
        )

    assert await count(store, PINS) == 1


async def test_what_is_asked_at_once_shares_a_transaction(store):
    begun = []
    original = store.database.write
    object.__setattr__(store.database, "write", lambda: begun.append(1) or original())

    await asyncio.gather(*(store.writer.put([pin(f"p{n}")]) for n in range(100)))

    assert len(begun) == 1


async def test_a_waiter_that_leaves_loses_nothing(store):
    async def handler(number: int) -> None:
        await store.writer.put([pin(f"p{number}")])

    handlers = [asyncio.create_task(handler(number)) for number in range(50)]
    await asyncio.sleep(0)
    for one in handlers:
        one.cancel()
    await asyncio.wait(handlers)

    await store.writer.flush()
    assert all(one.cancelled() for one in handlers)
    assert await count(store, PINS) == 50


async def test_close_writes_what_waits(url, tmp_path):
    async with running(url, tmp_path) as store:
        for number in range(1200):
            store.requests.record(settled(f"r{number}"))

    async with running(url, tmp_path) as store:
        assert await count(store, REQUESTS) == 1200
        assert await count(store, ATTEMPTS) == 1200


async def test_close_writes_what_a_cancelled_run_has_left(url, tmp_path):
    store = await open_store(url, state_dir=tmp_path, instance="one")
    run = asyncio.create_task(store.writer.run())
    waiting = [store.writer.put([pin(f"p{n}")]) for n in range(1000)]
    store.requests.record(settled())
    await asyncio.sleep(0.002)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run

    await store.writer.close()

    assert all(one.done() for one in waiting)
    assert await count(store, PINS) == 1000
    assert await count(store, REQUESTS) == 1
    await store.close()


async def test_a_row_that_the_database_never_takes_costs_no_other_row(store):
    good = [pin(f"p{n}") for n in range(30)]
    unfit = Row(RowKind.PIN, ("unfit", None, 1.0))  # no assignment: NOT NULL

    store.writer.record([*good[:17], unfit, *good[17:]])
    await store.writer.flush()

    assert await count(store, PINS) == 30
    assert store.writer.status.refused == 1
    assert store.writer.status.state is DatabaseState.OK


async def test_an_operation_that_fails_costs_no_other(store):
    async def bad(transaction):
        await transaction.insert([Row(RowKind.PIN, ("unfit", None, 1.0))])

    failed = store.writer.submit(bad)
    fine = store.writer.put([pin("fine")])

    with pytest.raises(StoreError):
        await failed
    await fine
    assert await count(store, PINS) == 1


async def test_in_an_outage_rows_go_to_disk_and_come_back_once(store, url):
    store.requests.record(settled("before"))
    await store.writer.flush()

    async with outage(url):
        for number in range(5):
            store.requests.record(settled(f"r{number}"))
        store.requests.record(settled("before"))
        await store.writer.put([pin("pinned")])
        await store.writer.flush()
        during = store.writer.status
    await reached(DatabaseState.OK, store)

    assert (during.state, during.spooled, during.lost) == (DatabaseState.SPOOLING, 13, 0)
    assert during.error.startswith("database.url: ")
    assert store.writer.status.spooled == 0
    assert await count(store, REQUESTS) == await count(store, ATTEMPTS) == 6
    assert await count(store, PINS) == 1


async def test_in_an_outage_operations_fail_at_once_and_later_work_again(store, url):
    async with outage(url):
        with pytest.raises(StoreError):
            await store.circuits.transition(KEY, Failed("x"), now=1.0, config=CONFIG)
        refused = store.circuits.transition(KEY, Failed("x"), now=1.0, config=CONFIG)
        assert isinstance(refused.exception(), StoreError)  # without a turn of the loop
    await reached(DatabaseState.OK, store)

    written = await store.circuits.transition(KEY, Failed("x"), now=1.0, config=CONFIG)
    assert written.circuits[KEY].failures == 1


async def test_the_spool_survives_a_restart(url, tmp_path):
    async with running(url, tmp_path) as store, outage(url):
        store.requests.record(settled("r1"))
        await store.writer.close()

    async with running(url, tmp_path, "two") as store:
        await store.writer.flush()
        assert await count(store, REQUESTS) == 1
    assert list((tmp_path / "spool").iterdir()) == []


async def test_what_the_spool_refuses_is_counted(store, url, monkeypatch):
    monkeypatch.setattr(store.writer._outage._spool, "_limit", 10)

    async with outage(url):
        store.requests.record(settled())
        with pytest.raises(StoreError):
            await store.writer.put([pin("lost")])
        await store.writer.flush()
        status = store.writer.status
    await reached(DatabaseState.OK, store)

    assert (status.state, status.lost) == (DatabaseState.DOWN, 3)
    store.requests.record(settled())
    await store.writer.flush()
    assert await count(store, REQUESTS) == 1


async def test_too_much_at_once_is_refused_and_counted(store, monkeypatch):
    monkeypatch.setattr(writer_module, "MAX_ROWS", 2)
    monkeypatch.setattr(writer_module, "MAX_JOBS", 1)

    store.writer.record([pin("a"), pin("b")])
    store.writer.record([pin("c")])
    taken, refused = store.writer.put([pin("d")]), store.writer.put([pin("e")])

    with pytest.raises(StoreError, match="too many writes wait"):
        await refused
    await taken
    assert store.writer.status.lost == 1


async def test_a_batch_costs_a_statement_for_each_table_and_not_for_each_row(store):
    batches = 3
    for number in range(batches * writer_module.BATCH_ROWS):
        store.requests.record(settled(f"r{number}", pool=POOL))

    with counted_statements(store.database) as statements:
        await store.writer.flush()

    assert len(statements) <= batches * 2
    assert await count(store, REQUESTS) == batches * writer_module.BATCH_ROWS


async def test_a_pin_is_found_by_any_gateway(store):
    await store.pins.put(POOL, PinKind.RESPONSE, "resp_1", AssignmentId("blue/a"), now=1.0)

    assert await store.pins.find(POOL, PinKind.RESPONSE, "resp_1", now=2.0) == "blue/a"


async def test_a_mistake_in_an_operation_lets_nobody_wait_for_ever(url, tmp_path):
    async def mistaken(transaction):
        raise KeyError("of ours")

    store = await open_store(url, state_dir=tmp_path, instance="one")
    run = asyncio.create_task(store.writer.run())
    waiting = [store.writer.submit(mistaken), store.writer.put([pin("beside")])]

    with pytest.raises(KeyError):
        await run
    for one in waiting:
        with pytest.raises(StoreError):
            await one
    await store.close()
