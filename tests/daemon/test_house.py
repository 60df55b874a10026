import asyncio

import pytest

from llmgw.config_file import config_for_nodes
from llmgw.daemon.house import House
from llmgw.daemon.records import Records
from llmgw.runtime.tasks import Supervisor
from llmgw.sim.node import SimNode
from llmgw.store.store import open_store
from tests.fakes.patience import until

NOWHERE = "http://127.0.0.1:9"


def loaded(folder, *urls, **gateway):
    return config_for_nodes(urls, state_dir=folder, **gateway)


@pytest.fixture
async def node():
    async with SimNode(["sim"], name="a") as node:
        yield node


@pytest.fixture
async def house(tmp_path, node):
    supervisor = Supervisor()
    store = await open_store("sqlite://", state_dir=tmp_path, instance="gw1")
    records = Records(store, supervisor)
    house = House(loaded(tmp_path, node.url), supervisor, records, instance="gw1")
    await house.prepare()
    house.start()
    async with asyncio.timeout(5):
        await house.listed()
    yield house
    await supervisor.stop()
    await house.stop()


def states(house):
    return {str(one.upstream.url): one for one in house.gateway.registry.fleet().states.values()}


async def test_a_started_house_has_listed_its_nodes(house, node):
    assert states(house)[node.url].discovery.names == ("sim",)


async def test_a_node_that_stays_keeps_its_state_and_a_new_one_is_asked(house, node, tmp_path):
    before = states(house)[node.url].discovery

    async with SimNode(["other"], name="b") as other:
        house.take(loaded(tmp_path, node.url, other.url))
        assert states(house)[node.url].discovery == before
        await until(lambda: states(house)[other.url].discovery.names is not None)

        assert states(house)[other.url].discovery.names == ("other",)


async def test_a_node_that_is_gone_is_no_longer_known(house, tmp_path):
    house.take(loaded(tmp_path, NOWHERE))

    assert list(states(house)) == [NOWHERE]
    assert house.summary.startswith("serving 1 upstreams")


async def test_what_is_shown_of_the_configuration(house, tmp_path):
    first = house.gateway.config_status

    house.refuse("nodes[0].url: is no URL")
    refused = house.gateway.config_status
    house.take(loaded(tmp_path, NOWHERE, drain_timeout="7s"))
    second = house.gateway.config_status

    assert (refused.digest, refused.loaded_at) == (first.digest, first.loaded_at)
    assert refused.last_error == "nodes[0].url: is no URL"
    assert second.last_error == ""
    assert second.digest != first.digest
    assert house.drain_timeout == 7.0


async def test_readiness_and_its_end_are_shown(house):
    assert not house.gateway.ready

    house.set_ready()
    house.set_draining()

    assert house.gateway.ready
    assert house.gateway.draining
