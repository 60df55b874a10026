"""A client and a node for the tests of the simulated node."""

import json

import aiohttp
import pytest

from llmgw.sim.node import SimNode


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield session


@pytest.fixture
async def node():
    async with SimNode(["m", "n"], name="a", tokens=4) as node:
        yield node


@pytest.fixture
def events():
    return events_of


def events_of(raw):
    """[(event name or None, data as JSON or text)] of a whole stream."""
    blocks = raw.decode().removesuffix("\n\n").split("\n\n") if raw else []
    return [event_of(block) for block in blocks]


def event_of(block):
    lines = dict(line.split(": ", 1) for line in block.split("\n"))
    data = lines["data"]
    return lines.get("event"), json.loads(data) if data.startswith("{") else data
