import json
from dataclasses import replace
from pathlib import Path

import pytest

from llmgw.config_file import ConfigError, Fault, config_for_nodes
from llmgw.core.config import DatabaseConfig, Listen
from llmgw.daemon.bulletin import Bulletin, read_outcome
from llmgw.daemon.doors import Change
from llmgw.daemon.front import Opening
from llmgw.daemon.places import Places
from llmgw.daemon.reloading import Reloading
from llmgw.daemon.sockets import ListenFailed
from llmgw.observe.metrics import RELOADS
from llmgw.runtime.reload import Result

SAME = Change((), (), ())
FAULTY = ConfigError([Fault("nodes[0].url", "is no URL"), Fault("log.level", "is unknown")])
TAKEN = ListenFailed("gateway.listen", Listen("127.0.0.1", 80), "the address is in use")


class FakeSource:
    def __init__(self):
        self.loaded = config_for_nodes(["http://127.0.0.1:9"], state_dir=Path("/nowhere"))
        self.error = None

    def load(self):
        if self.error is not None:
            raise self.error
        return self.loaded

    def __str__(self):
        return "a test"


class FakeHouse:
    def __init__(self):
        self.taken = []
        self.refused = []
        self.error = None

    def take(self, loaded):
        if self.error is not None:
            raise self.error
        self.taken.append(loaded)

    def refuse(self, reason):
        self.refused.append(reason)


class FakeFront:
    def __init__(self):
        self.listeners = self
        self.error = None
        self.changed = []

    def open(self, config):
        if self.error is not None:
            raise self.error
        return Opening(SAME, SAME)

    async def change(self, opening):
        self.changed.append(opening)


class FakeNotifier:
    def __init__(self):
        self.said = []

    def reloading(self):
        self.said.append("RELOADING")

    def ready(self, status):
        self.said.append(status)


class Stage:
    def __init__(self, folder):
        self.places = Places(folder, folder)
        self.source, self.house = FakeSource(), FakeHouse()
        self.front, self.notifier = FakeFront(), FakeNotifier()
        self.reloading = Reloading(
            self.source,
            self.house,
            self.front,
            self.notifier,
            Bulletin(self.places),
            self.source.loaded.config,
        )

    @property
    def outcome(self):
        return read_outcome(self.places.outcome)


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def counted(result):
    return RELOADS.labels(result)._value.get()


async def test_a_good_configuration_is_taken_then_its_doors_open(stage):
    before = counted("success")

    await stage.reloading.once(1)

    assert stage.house.taken == [stage.source.loaded]
    assert len(stage.front.changed) == 1
    assert stage.outcome.result is Result.SUCCESS
    assert stage.outcome.digest == stage.source.loaded.digest
    assert stage.notifier.said[0] == "RELOADING"
    assert stage.source.loaded.digest in stage.notifier.said[1]
    assert counted("success") == before + 1
    assert json.loads(stage.places.loaded.read_text())["nodes"][0]["url"] == "http://127.0.0.1:9"


async def test_what_only_a_start_takes_is_told_and_stays(stage, caplog):
    loaded = stage.source.loaded
    config = replace(loaded.config, database=DatabaseConfig("sqlite://", keep=7.0))
    stage.source.loaded = replace(loaded, config=config)

    for number in (1, 2):
        await stage.reloading.once(number)

    assert [one.config.database for one in stage.house.taken] == [DatabaseConfig(keep=7.0)] * 2
    notes = [one.note for one in caplog.records if one.message == "config note"]
    assert notes.count("database.url: takes effect at the next start") == 2
    assert "url" not in json.loads(stage.places.loaded.read_text())["database"]


async def test_a_bad_file_changes_nothing_but_what_is_said_of_it(stage, caplog):
    stage.source.error = FAULTY
    before = counted("error")

    await stage.reloading.once(7)

    assert stage.house.taken == stage.front.changed == []
    assert stage.outcome.number == 7
    assert stage.outcome.faults == ("nodes[0].url: is no URL", "log.level: is unknown")
    assert "nodes[0].url: is no URL" in stage.house.refused[0]
    assert "nodes[0].url: is no URL" in stage.notifier.said[1]
    assert counted("error") == before + 1
    assert [one.message for one in caplog.records] == ["config reload failed"]


async def test_an_address_that_is_taken_refuses_the_whole_reload(stage):
    stage.front.error = TAKEN

    await stage.reloading.once(1)

    assert stage.house.taken == []
    assert stage.outcome.faults == (str(TAKEN),)


async def test_a_fault_of_our_own_is_an_end_too(stage):
    """Whoever waits for the outcome must not wait for ever, nor the service manager."""
    stage.house.error = RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        await stage.reloading.once(1)

    assert stage.outcome.result is Result.ERROR
    assert len(stage.notifier.said) == 2


async def test_a_good_reload_after_a_bad_one_answers_a_later_ask(stage):
    stage.source.error = FAULTY
    await stage.reloading.once(1)
    first = stage.outcome
    stage.source.error = None

    await stage.reloading.once(2)

    assert stage.outcome.result is Result.SUCCESS
    assert stage.outcome.began > first.began
