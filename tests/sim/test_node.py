import asyncio

import aiohttp
import pytest

from llmgw.sim.node import SimNode
from tests.fakes.patience import until


async def test_two_nodes_stand_side_by_side():
    async with SimNode(["m"], name="a") as a, SimNode(["n"], name="b") as b:
        assert a.url != b.url
        assert (a.name, b.name) == ("a", "b")


async def test_a_port_that_is_asked_for_is_the_one(node, http):
    port = int(node.url.rpartition(":")[2])
    await node.stop()

    async with SimNode(["m"], port=port) as again:
        assert again.url == node.url
        assert (await http.get(f"{again.url}/health")).status == 200


async def test_a_taken_port_is_an_error(node):
    taken = SimNode(["m"], port=int(node.url.rpartition(":")[2]))

    with pytest.raises(OSError, match="in use"):
        await taken.start()
    await taken.stop()


async def test_a_refusing_node_takes_no_connection_and_drops_those_it_has(node, http):
    hung = http.get(f"{node.url}/v1/models")
    await node.inject("hang_list,times=1")
    waiting = asyncio.gather(hung, return_exceptions=True)
    await until(lambda: not node.faults.active)  # it has struck

    await node.inject("refuse")

    (lost,) = await waiting
    assert isinstance(lost, aiohttp.ClientConnectionError)
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.get(f"{node.url}/health")


async def test_a_refusing_node_still_listens_to_its_control(node, http):
    url = node.url
    await node.inject("refuse", "refuse")

    assert (await http.get(f"{node.control_url}/health")).status == 200
    assert (await http.delete(f"{node.control_url}/_sim/faults")).status == 200
    assert (await http.get(f"{url}/health")).status == 200


async def test_whoever_tells_a_node_to_refuse_gets_an_answer(node, http):
    answer = await http.post(f"{node.url}/_sim/faults", json={"fault": "refuse"})

    assert (await answer.json())["faults"][0]["fault"] == "refuse"
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.get(f"{node.url}/health")


async def test_faults_may_be_there_from_the_start(http):
    async with SimNode(["m"], faults=["refuse", "empty_list"]) as node:
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(f"{node.url}/health")
        assert len(node.faults.active) == 2


async def test_a_node_stops_at_once_whatever_hangs(http):
    node = SimNode(["m"], faults=["hang_health,times=1"])
    await node.start()
    waiting = asyncio.gather(http.get(f"{node.url}/health"), return_exceptions=True)
    await until(lambda: not node.faults.active)  # it has struck

    async with asyncio.timeout(20):  # aiohttp waits for a handler for 60 s, and this one for 3600
        await node.stop()

    assert isinstance((await waiting)[0], aiohttp.ClientError)


async def test_a_node_that_does_not_run_says_so():
    with pytest.raises(RuntimeError, match="not running"):
        await SimNode(["m"]).clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_the_url_can_be_asked_on_both_families(http, host):
    async with SimNode(["m"], host=host) as node:
        assert (await http.get(f"{node.url}/health")).status == 200
