import asyncio
import os
import signal

import pytest

from llmgw.daemon import process as module
from llmgw.daemon.bulletin import Bulletin
from llmgw.daemon.doors import Change
from llmgw.daemon.front import Front, Opening
from llmgw.daemon.places import Places
from llmgw.daemon.process import Process
from llmgw.daemon.successor import SuccessorFailed
from llmgw.runtime.reload import Reloads
from llmgw.runtime.tasks import Supervisor
from tests.fakes.patience import until

NOTHING = Opening(Change((), (), ()), Change((), (), ()))


class Journal(list):
    """Everything that happens, in order."""

    def note(self, word):
        self.append(word)


class FakeHouse:
    drain_timeout = 600.0
    summary = "serving"

    def __init__(self, journal):
        self.journal = journal
        self.round = asyncio.Event()

    def start(self):
        self.journal.note("house starts")

    async def listed(self):
        await self.round.wait()

    def set_ready(self):
        self.journal.note("ready")

    def set_draining(self):
        self.journal.note("not ready")

    async def stop(self):
        self.journal.note("house stops")


class FakeServer:
    def __init__(self, journal, name):
        self.journal = journal
        self.name = name
        self.idle = asyncio.Event()

    async def start(self, sockets):
        self.journal.note(f"{self.name} serves")

    async def stop_listening(self, sockets=None):
        self.journal.note(f"{self.name} closes its doors")

    async def drain(self, within):
        self.journal.note(f"{self.name} drains {within:g}")
        await self.idle.wait()

    async def close(self):
        self.journal.note(f"{self.name} is closed")


class FakeNotifier:
    def __init__(self, journal):
        self.journal = journal

    def ready(self, status):
        self.journal.note(f"READY {status}")

    def stopping(self, status):
        self.journal.note("STOPPING")

    def handed_over(self, pid):
        self.journal.note(f"MAINPID {pid}")


class Stage:
    """A process with its surroundings faked; only its signals are real."""

    def __init__(self, places):
        self.journal = Journal()
        self.house = FakeHouse(self.journal)
        self.http = FakeServer(self.journal, "http")
        self.places = places
        self.reloads = []
        self.process = Process(
            self.house,
            Front(self.http, FakeServer(self.journal, "metrics")),
            supervisor=Supervisor(),
            notifier=FakeNotifier(self.journal),
            bulletin=Bulletin(places),
            reloads=Reloads(self.reload),
            command=["llmgw"],
            settle=lambda: self.journal.note("heap settled"),
        )
        self.owner = Supervisor()
        self.ended = None

    async def reload(self, number):
        self.reloads.append(number)

    async def begin(self, ready_fd=None):
        self.house.round.set()
        self.ended = asyncio.ensure_future(self.process.run(NOTHING, ready_fd))
        await self.until("ready")

    async def until(self, word):
        await until(lambda: word in self.journal)

    def send(self, number):
        os.kill(os.getpid(), number)


@pytest.fixture
async def stage(tmp_path):
    stage = Stage(Places(tmp_path, tmp_path))
    yield stage
    stage.http.idle.set()
    if stage.ended is not None:
        if not stage.ended.done():
            stage.send(signal.SIGTERM)
        await stage.ended
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        loop.remove_signal_handler(number)


async def test_readiness_is_told_after_the_doors_are_open(stage):
    await stage.begin()

    assert stage.journal == [
        "house starts",
        "http serves",
        "metrics serves",
        "heap settled",
        "ready",
        "READY serving",
    ]
    assert stage.places.pid.read_text() == f"{os.getpid()}\n"


async def test_a_listing_that_hangs_holds_readiness_up_for_a_moment_only(stage, monkeypatch):
    monkeypatch.setattr(module, "READY_WITHIN", 0.01)
    stage.ended = asyncio.ensure_future(stage.process.run(NOTHING, None))

    await stage.until("ready")

    assert not stage.house.round.is_set()


async def test_a_term_signal_drains_before_anything_ends(stage):
    await stage.begin()
    del stage.journal[:]

    stage.send(signal.SIGTERM)
    await stage.until("http drains 600")
    assert stage.journal == [
        "STOPPING",
        "not ready",
        "http closes its doors",
        "http drains 600",
    ]
    stage.http.idle.set()
    await stage.ended

    assert stage.journal[4:] == ["http is closed", "metrics is closed", "house stops"]
    assert not stage.places.pid.exists()


async def test_a_second_signal_stops_at_once(stage):
    await stage.begin()
    stage.send(signal.SIGTERM)
    await stage.until("http drains 600")

    stage.send(signal.SIGINT)
    async with asyncio.timeout(5):
        await stage.ended

    assert not stage.http.idle.is_set()
    assert stage.journal[-1] == "house stops"


async def test_a_hangup_reloads(stage):
    await stage.begin()

    stage.send(signal.SIGHUP)
    await until(lambda: stage.reloads)

    assert stage.reloads == [1]


async def test_a_hangup_during_the_drain_changes_nothing(stage):
    await stage.begin()
    stage.send(signal.SIGTERM)
    await stage.until("http drains 600")

    stage.send(signal.SIGHUP)
    for _ in range(10):
        await asyncio.sleep(0.001)

    assert stage.reloads == []


async def test_a_successor_that_is_ready_takes_over_and_the_old_drains(stage, monkeypatch):
    async def successor(command, http, metrics):
        return 4711

    monkeypatch.setattr(module, "start_successor", successor)
    await stage.begin()
    del stage.journal[:]

    stage.send(signal.SIGUSR2)
    await stage.until("http drains 600")

    assert stage.journal[0] == "MAINPID 4711"
    assert "metrics closes its doors" in stage.journal


async def test_the_first_term_signal_after_an_upgrade_still_lets_streams_finish(
    stage, monkeypatch
):
    async def successor(command, http, metrics):
        return 4711

    monkeypatch.setattr(module, "start_successor", successor)
    await stage.begin()
    stage.send(signal.SIGUSR2)
    await stage.until("http drains 600")

    stage.send(signal.SIGTERM)
    for _ in range(10):
        await asyncio.sleep(0.001)

    assert not stage.ended.done()


async def test_a_successor_that_fails_leaves_the_old_serving(stage, monkeypatch):
    async def successor(command, http, metrics):
        raise SuccessorFailed("no")

    monkeypatch.setattr(module, "start_successor", successor)
    await stage.begin()
    del stage.journal[:]

    stage.send(signal.SIGUSR2)
    await until(stage.places.upgrade.exists)

    assert stage.places.upgrade.read_text() == "no\n"
    assert stage.journal == []


async def test_a_successor_tells_its_predecessor_and_not_the_manager(stage):
    reader, writer = os.pipe()

    await stage.begin(ready_fd=writer)

    assert os.read(reader, 16) == b"ready\n"
    os.close(reader)
    assert "READY serving" not in stage.journal


async def test_a_stop_calls_an_upgrade_off_that_has_not_come_up(stage, monkeypatch):
    begun, called_off = asyncio.Event(), []

    async def successor(command, http, metrics):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            called_off.append(command)

    monkeypatch.setattr(module, "start_successor", successor)
    await stage.begin()
    stage.send(signal.SIGUSR2)
    await begun.wait()

    stage.send(signal.SIGTERM)
    await stage.until("http drains 600")

    assert called_off == [["llmgw"]]
