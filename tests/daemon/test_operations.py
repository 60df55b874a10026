"""What a running house does for the commands of this program."""

import pytest

from llmgw.config_file import config_for_nodes
from llmgw.daemon.control import OperationRefused
from llmgw.daemon.house import House
from llmgw.daemon.operations import Operations
from llmgw.daemon.records import Records
from llmgw.runtime.tasks import Supervisor
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.store import open_store

NODE = "http://127.0.0.1:9"
NAME = "127.0.0.1:9"


@pytest.fixture
async def house(tmp_path):
    supervisor = Supervisor()
    store = await open_store("sqlite://", state_dir=tmp_path, instance="gw1")
    loaded = config_for_nodes([NODE], state_dir=tmp_path)
    house = House(loaded, supervisor, Records(store, supervisor), instance="gw1")
    await house.prepare()
    supervisor.loop("writer", store.writer.run)
    yield house
    await supervisor.stop()
    await house.stop()


@pytest.fixture
def operations(house):
    return Operations(house).by_name()


def draining(house) -> frozenset[str]:
    return house.gateway.board.draining()


async def test_the_status_is_the_health_with_what_only_the_process_knows(operations):
    found = await operations["status"]({})

    assert (found["nodes"], found["state"], found["database"]) == (1, "starting", "ok")
    assert found["pid"]


async def test_a_drain_counts_at_once_and_ends_at_once(operations, house):
    assert await operations["drain"]({"node": NAME}) == {"node": NAME, "for_seconds": None}
    assert draining(house) == {NAME}

    assert (await operations["undrain"]({"node": NAME}))["was_drained"] is True
    assert draining(house) == frozenset()
    assert (await operations["undrain"]({"node": NAME}))["was_drained"] is False


async def test_a_drain_for_a_while_is_over_by_itself(operations, house):
    await operations["drain"]({"node": NAME, "for_seconds": 0.0})

    assert draining(house) == frozenset()


async def test_a_drained_node_is_explained(operations):
    await operations["drain"]({"node": NAME, "for_seconds": 60})

    found = await operations["explain"]({"model": "m"})

    assert found["excluded"] == [{"assignment": f"cluster/{NAME}", "reason": "draining"}]


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("drain", {"node": "none"}, f"there are: {NAME}"),
        ("undrain", {}, f"there are: {NAME}"),
        ("explain", {}, "a model must be named"),
        ("drain", {"node": NAME, "for_seconds": -1}, "from 0 to"),
        ("drain", {"node": NAME, "for_seconds": float("nan")}, "from 0 to"),
        ("drain", {"node": NAME, "for_seconds": 10**400}, "from 0 to"),
        ("drain", {"node": NAME, "for_seconds": "1h"}, "from 0 to"),
    ],
)
async def test_what_cant_be_done_is_refused_in_words(operations, name, asked, says):
    with pytest.raises(OperationRefused, match=says):
        await operations[name](asked)


@pytest.mark.parametrize("name", ["drain", "undrain"])
async def test_a_database_that_is_away_is_told(operations, house, monkeypatch, name):
    def fail(*_: object, **__: object) -> None:
        raise StoreError(StoreFault.UNREACHABLE)

    for one in ("begin", "end"):
        monkeypatch.setattr(type(house.records.store.drains), one, fail)

    with pytest.raises(OperationRefused, match="can't be reached"):
        await operations[name]({"node": NAME})
