"""The database's side of the process: its loops, its log lines, its end."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

from llmgw.daemon import records as module
from llmgw.daemon.records import Records
from llmgw.observe.metrics import DATABASE_UP
from llmgw.runtime.tasks import Supervisor
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.jobs import DatabaseState
from llmgw.store.store import open_store
from tests.fakes.patience import until


class FakeStore:
    """The parts of a store that only answer, or fail."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        self.error: StoreError | None = None
        self.closed = 0
        self.state = DatabaseState.OK
        self.gateways = SimpleNamespace(start=self._start, beat=self._beat, stop=self._stop)
        self.retention = SimpleNamespace(sweep=self._sweep)
        self.writer = SimpleNamespace(run=self._idle)
        self.reader = SimpleNamespace(run=self._idle)

    async def close(self) -> None:
        self.calls.append(("close", None))

    def tell(self, state: DatabaseState) -> None:
        self.writer.status = SimpleNamespace(state=state, spooled=3, lost=0, error="away")

    async def _idle(self) -> None:
        await asyncio.Event().wait()

    async def _start(self, *, now: float, fresh: bool) -> int:
        return self._answer("start", fresh)

    async def _beat(self, *, now: float) -> int:
        return self._answer("beat", now)

    async def _sweep(self, *, now: float, keep: float) -> int:
        return self._answer("sweep", keep)

    def _stop(self) -> None:
        self.calls.append(("stop", None))

    def _answer(self, name: str, value: object) -> int:
        self.calls.append((name, value))
        if self.error is not None:
            raise self.error
        return self.closed


@pytest.fixture
def store(monkeypatch):
    for name in ("BEAT_EVERY", "START_AGAIN", "STATE_EVERY", "SWEEP_EVERY"):
        monkeypatch.setattr(module, name, 0.001)
    store = FakeStore()
    store.tell(DatabaseState.OK)
    return store


@pytest.fixture
async def records(store):
    supervisor = Supervisor()
    records = Records(store, supervisor, fresh=False)
    records.keep = 60.0
    yield records
    await supervisor.stop()


def names(store: FakeStore) -> list[str]:
    return [name for name, _ in store.calls]


async def test_a_gateway_says_once_that_it_began_and_then_that_it_lives(records, store):
    records.start()

    await until(lambda: names(store).count("beat") > 2)

    assert [one for one in store.calls if one[0] == "start"] == [("start", False)]


async def test_it_says_so_again_until_the_database_hears_it(records, store):
    store.error = StoreError(StoreFault.UNREACHABLE)
    records.start()
    await until(lambda: names(store).count("start") > 2)
    assert "beat" not in names(store)

    store.error = None

    await until(lambda: "beat" in names(store))


async def test_requests_that_were_closed_for_a_dead_gateway_are_told(records, store, caplog):
    store.closed = 2
    with caplog.at_level(logging.WARNING, "llmgw"):
        records.start()
        await until(lambda: "beat" in names(store))

    assert caplog.records[0].message == "abandoned requests closed"
    assert caplog.records[0].requests == 2


async def test_old_rows_go_and_a_database_that_is_away_is_asked_again(records, store):
    store.error = StoreError(StoreFault.UNREACHABLE)
    records.start()
    await until(lambda: names(store).count("sweep") > 1)
    store.error = None

    await until(lambda: names(store).count("sweep") > 3)

    assert ("sweep", 60.0) in store.calls


async def test_each_change_of_the_database_is_one_line(records, store, caplog):
    with caplog.at_level(logging.INFO, "llmgw"):
        for state in (
            DatabaseState.OK,
            DatabaseState.SPOOLING,
            DatabaseState.SPOOLING,
            DatabaseState.DOWN,
            DatabaseState.OK,
        ):
            store.tell(state)
            records.look()

    assert [one.message for one in caplog.records] == [
        "database does not answer",
        "database does not answer and rows are lost",
        "database answers again",
    ]


@pytest.mark.parametrize(("state", "up"), [(DatabaseState.OK, 1.0), (DatabaseState.DOWN, 0.0)])
async def test_metrics_show_it(records, store, state, up):
    records.start()

    store.tell(state)

    (sample,) = DATABASE_UP.collect()[0].samples
    assert sample.value == up


async def test_at_the_end_the_gateway_says_so_before_the_last_rows_go(records, store):
    await records.stop()

    assert names(store) == ["stop", "close"]


async def test_a_real_store_is_handed_on_by_subject(tmp_path):
    store = await open_store("sqlite://", state_dir=tmp_path, instance="gw1")
    records = Records(store, Supervisor())

    assert records.stores.circuits is store.circuits
    assert records.state is DatabaseState.OK

    await records.stop()
