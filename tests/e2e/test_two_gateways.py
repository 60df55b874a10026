"""What gateways that share a database know of each other: probes, leases, pins, drains."""

import asyncio
import signal
import time

import aiohttp
import pytest
import pytest_asyncio

from llmgw.sim.node import SimNode
from tests.e2e.two_gateways import Pair, data_of
from tests.fakes.patience import until

OPEN_FOR = 3.0  # seconds: of a circuit, and of a probe's slot
FREE = "SELECT leases = '[]' FROM circuits"
FAILS_ONCE = "status,status=503,times=1"
SERVED = """
SELECT count(*), min(retry_count + 1 = (SELECT count(*) FROM attempts WHERE request_id = id))
FROM requests WHERE outcome = 'succeeded' AND ended_at IS NOT NULL
AND model = 'other' AND route = '/v1/chat/completions'
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nodes():
    async with SimNode(["sim"], name="a", ttft=0.2) as a, SimNode(["other"], name="b") as b:
        yield a, b


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(tmp_path_factory, nodes):
    """Node `n0` alone has the model `sim`."""
    urls = [one.url for one in nodes]
    pair = Pair(tmp_path_factory.mktemp("pair"), urls, open_for=f"{OPEN_FOR:.0f}s")
    await pair.start()
    yield pair
    await pair.stop()


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def node(nodes):
    """What an earlier test left to fail is forgotten."""
    for one in nodes:
        await one.clear()
    return nodes[0]


async def opened(pair, node):
    """The circuit is open by a failure at the first gateway, and the second one knows; waits,
    when it is called, until a probe may come.
    """
    for gateway in (pair.one, pair.two):
        await pair.until_chat(gateway, 200)
    await node.inject(FAILS_ONCE)
    assert await pair.chat(pair.one) == 503
    await pair.until_known(pair.two, "open")
    seen = len(node.seen)
    assert await pair.chat(pair.two) == 503
    assert len(node.seen) == seen, "the second gateway asks no one"
    ((open_until,),) = pair.rows("SELECT open_until FROM circuits")

    async def due() -> None:
        await asyncio.sleep(open_until - time.time() + 0.1)

    return due


async def test_one_of_a_hundred_requests_at_two_gateways_probes(pair, node):
    due = await opened(pair, node)
    await due()
    seen = len(node.seen)

    statuses = await asyncio.gather(
        *(pair.chat(gateway) for _ in range(50) for gateway in (pair.one, pair.two))
    )

    assert len(node.seen) == seen + 1
    assert sorted(statuses) == [200] + [503] * 99
    await pair.until_chat(pair.one, 200)
    await pair.until_chat(pair.two, 200)
    assert pair.rows("SELECT * FROM circuits") == []


async def test_the_slot_of_a_killed_prober_is_taken_over(pair, node):
    due = await opened(pair, node)
    await node.inject("hang,times=1")
    await due()
    seen = len(node.seen)
    probing = asyncio.ensure_future(pair.chat(pair.one))
    await until(lambda: len(node.seen) > seen)

    pair.one.signal(signal.SIGKILL)
    await asyncio.wait((probing,))
    assert probing.exception() is not None
    assert await pair.chat(pair.two) == 503, "the slot is another gateway's"

    await pair.until_chat(pair.two, 200)
    await pair.one.ended()
    await pair.one.start()


async def test_a_client_that_leaves_during_a_probe_gives_the_slot_back(pair, node):
    due = await opened(pair, node)
    await node.inject("hang,times=1")
    await due()
    seen = len(node.seen)
    probing = asyncio.ensure_future(pair.chat(pair.one))
    await until(lambda: len(node.seen) > seen)
    assert pair.rows(FREE) == [(False,)]

    probing.cancel()

    await until(lambda: pair.rows(FREE) == [(True,)])  # a slot that is lost stays in its row
    await pair.until_chat(pair.two, 200)


async def test_a_response_is_found_at_every_gateway(pair, nodes):
    body = {"model": "other", "input": "hello"}
    made = [(await pair.ask(pair.one, "POST", "/v1/responses", body))[1]["id"]]
    url = f"{pair.one.url}/v1/responses"
    async with pair.session.post(url, json={**body, "stream": True}) as answer:
        made.append(data_of(await answer.read())[0]["response"]["id"])

    for id in made:
        follow = {**body, "previous_response_id": id}
        assert (await pair.ask(pair.two, "POST", "/v1/responses", follow))[0] == 200
        assert (await pair.ask(pair.two, "GET", f"/v1/responses/{id}"))[0] == 200
    assert pair.rows("SELECT DISTINCT assignment FROM pins") == [("cluster/n1",)]


async def test_a_response_that_nobody_keeps_is_found_nowhere(pair):
    body = {"model": "other", "input": "hello", "store": False}
    id = (await pair.ask(pair.one, "POST", "/v1/responses", body))[1]["id"]

    status, answer = await pair.ask(pair.two, "GET", f"/v1/responses/{id}")

    assert (status, answer["error"]["code"]) == (404, "response_not_found")


async def test_a_node_is_drained_for_both_gateways_by_one_command(pair, node):
    status, out, err = await pair.one.run("drain", "n0", "--for", "1h")
    assert (status, err) == (0, "")

    await pair.until_chat(pair.one, 503)
    await pair.until_chat(pair.two, 503)
    status, out, _ = await pair.two.run("explain", "--model", "sim", "--json")
    assert status == 1
    assert '"draining"' in out

    assert (await pair.two.run("undrain", "n0"))[0] == 0
    await pair.until_chat(pair.one, 200)
    assert (await pair.one.run("drain", "nobody"))[0] == 1


async def test_what_a_killed_gateway_left_open_is_closed_by_its_next_start(pair, node):
    await pair.until_chat(pair.one, 200)  # it has seen that no circuit is open any more
    await node.inject("hang,times=1")
    running = asyncio.ensure_future(pair.chat(pair.one))
    query = "SELECT outcome FROM requests WHERE ended_at IS NULL"
    await until(lambda: pair.rows(query) == [(None,)])

    pair.one.signal(signal.SIGKILL)
    with pytest.raises(aiohttp.ClientError):
        await running
    await pair.one.ended()
    await pair.one.start()
    await until(lambda: pair.rows(query) == [])

    closed = "SELECT outcome FROM requests WHERE closed_by IS NOT NULL"
    assert pair.rows(closed) == [("cancelled",)]


async def test_a_stop_loses_no_row(pair):
    body = {"model": "other", "max_tokens": 1}
    statuses = await asyncio.gather(*(pair.chat(pair.one, **body) for _ in range(200)))

    pair.one.signal(signal.SIGTERM)
    await pair.one.ended()

    assert statuses == [200] * 200
    assert pair.rows(SERVED) == [(200, 1)], "each with its attempt"
    await pair.one.start()
