import asyncio
import io
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from llmgw.cli.demo import MODEL, DemoFailed, Story
from llmgw.cli.narrator import Narrator
from llmgw.sim.node import SimNode

COMMAND = (sys.executable, "-m", "llmgw", "demo")


async def test_the_demo_shows_a_failover_and_exits():
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--once", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )

    out, err = await process.communicate()

    text = out.decode()
    assert (process.returncode, err) == (0, b"")
    assert "took the request and died" in text
    assert "answered it: one request, 2 attempts, HTTP 200" in text
    assert text.count("| Hello from ") >= 2
    assert "\x1b" not in text


async def test_the_demo_stays_until_it_is_interrupted_and_leaves_nothing_behind():
    process = await asyncio.create_subprocess_exec(*COMMAND, stdout=asyncio.subprocess.PIPE)
    lines = []
    while "/_sim/faults" not in "".join(lines):
        lines.append((await process.stdout.readline()).decode())
    gateway, log = fact(lines, "gateway"), Path(fact(lines, "its log"))

    before = await nodes_of(gateway)
    process.send_signal(signal.SIGINT)
    await process.communicate()

    assert (before, process.returncode) == (2, 0)
    with pytest.raises(aiohttp.ClientConnectorError):
        await nodes_of(gateway)
    assert not log.parent.exists()


async def test_an_interrupted_demo_does_not_claim_success():
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--once", stdout=asyncio.subprocess.PIPE
    )
    await process.stdout.readline()

    process.send_signal(signal.SIGTERM)
    await process.communicate()

    assert process.returncode == 130


@pytest.mark.parametrize(
    ("route", "why"),
    [
        pytest.param(
            lambda a, b, turn: (a, b)[turn % 2],
            "not whole",
            id="no failover: the cut is passed on",
        ),
        pytest.param(lambda a, b, turn: a, "was never asked", id="the failing node is left out"),
    ],
)
async def test_a_gateway_that_does_not_fail_over_is_found_out(route, why):
    async with two_nodes() as (a, b), relay_to(lambda turn: route(a, b, turn)) as story_of:
        with pytest.raises(DemoFailed, match=why):
            await story_of(a, b).tell()


async def test_an_answer_that_no_node_gave_is_found_out():
    async with two_nodes() as (a, b), relay_to(lambda turn: a, request_id="other") as story_of:
        with pytest.raises(DemoFailed, match="no node served"):
            await story_of(a, b).tell()


async def test_an_error_inside_a_stream_is_no_whole_answer():
    async with two_nodes() as (a, b), relay_to(lambda turn: a) as story_of:
        await a.inject("in_band,after=2")

        with pytest.raises(DemoFailed, match="not whole"):
            await story_of(a, b).tell()


async def test_no_answer_at_all_is_told():
    async with two_nodes() as (a, b), relay_to(lambda turn: a) as story_of:
        story = story_of(a, b)
        story._gateway.url = "http://127.0.0.1:1"

        with pytest.raises(DemoFailed, match="gave no answer"):
            await story.tell()


async def nodes_of(gateway):
    async with aiohttp.ClientSession() as http, http.get(f"{gateway}/health") as response:
        return (await response.json())["nodes"]


def fact(lines, name):
    return next(line.split()[-1] for line in lines if line.strip().startswith(name))


@asynccontextmanager
async def two_nodes():
    async with SimNode([MODEL], name="a") as a, SimNode([MODEL], name="b") as b:
        yield a, b


@asynccontextmanager
async def relay_to(choose, request_id=None):
    """Something that looks like a gateway, sends each request to one node and never to another."""
    turns = []

    async def relay(request):
        turns.append(request)
        own_id = f"r{len(turns)}"
        node = choose(len(turns) - 1)
        response = web.StreamResponse(headers={"x-request-id": request_id or own_id})
        await response.prepare(request)
        async with session.post(
            node.url + request.path, data=await request.read(), headers={"x-request-id": own_id}
        ) as upstream:
            try:
                async for data in upstream.content.iter_any():
                    await response.write(data)
            except aiohttp.ClientPayloadError:
                pass  # what was cut there ends cleanly here: the worst that could be shown
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", relay)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:
        gateway = SimpleNamespace(url=url, log="log")
        narrator = Narrator(io.StringIO(), {})
        yield lambda *nodes: Story(narrator, nodes, gateway, session)
    await runner.cleanup()
