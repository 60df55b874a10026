"""The log of a whole gateway: one line a request, and nothing of what clients or nodes said."""

import asyncio
import json

import pytest

from llmgw.sim.node import SimNode
from tests.fakes.process import chat
from tests.fakes.raw_client import RawClient, request

CANARY = "sk-CANARY"
FORGED = '\\n{"level":"error","message":"forged"}\\u001b[31m\\u2028'


@pytest.fixture
async def nodes():
    async with SimNode(["sim"], name="a") as a, SimNode(["sim"], name="b") as b:
        yield a, b


async def ask(gateway, body: bytes, path: str = "/v1/chat/completions", headers=()):
    client = await RawClient.connect(("127.0.0.1", gateway.port))
    try:
        return await client.ask(request("POST", path, body=body, headers=headers))
    finally:
        client.close()


async def logged(gateway, *, lines: int):
    """Access lines are written together, a moment later."""
    for _ in range(500):
        if gateway.messages().count("request") >= lines:
            break
        await asyncio.sleep(0.01)
    return gateway.log()


async def test_a_request_that_was_handed_on_has_one_line_with_all_that_is_known(serve, nodes):
    gateway = await serve([one.url for one in nodes])
    for node in nodes:
        await node.inject("status,status=503,times=1")

    first = await ask(gateway, json.dumps(chat(stream=True)).encode())
    second = await ask(gateway, json.dumps(chat()).encode())

    lines = [one for one in await logged(gateway, lines=2) if one["message"] == "request"]
    assert [one["request_id"] for one in lines] == [
        reply.headers["x-request-id"] for reply in (first, second)
    ]
    for line, reply in zip(lines, (first, second), strict=True):
        assert (line["status"], line["method"], line["model"]) == (reply.status, "POST", "sim")
        assert line["route"] == "/v1/chat/completions"
        assert line["assignment"] in ("cluster/n0", "cluster/n1")
        assert line["bytes"] > 100
        assert 0 < line["overhead"] < line["seconds"] < 5
    assert sum(one["attempts"] for one in lines) >= 3


async def test_nobody_can_write_a_line_of_the_log(serve, nodes):
    gateway = await serve([one.url for one in nodes])
    forged = f'{{"model": "m{FORGED}", "messages": "{CANARY}"}}'.encode()

    await ask(gateway, forged)
    await ask(gateway, forged, path="/v1/%0A%7Bforged%7D")
    await ask(gateway, forged, headers=[("Authorization", f"Bearer {CANARY}"), ("X-A", "\x1b[3m")])
    await ask(gateway, f'{{"model": "sim", "messages": "{CANARY}"'.encode())

    log = await logged(gateway, lines=4)
    text = json.dumps(log)
    assert len([one for one in log if one["message"] == "request"]) == 4
    assert all(one["level"] in ("info", "warning") for one in log)
    assert "forged" not in text
    assert CANARY not in text
    raw = gateway.config.with_name("log").read_text()
    assert all(one.isprintable() for one in raw.splitlines())


async def test_the_access_log_can_be_turned_off(serve, nodes):
    gateway = await serve([one.url for one in nodes], extra="[log]\naccess = false\n")

    assert (await ask(gateway, json.dumps(chat()).encode())).status == 200

    gateway.process.terminate()
    await gateway.ended()
    assert "request" not in gateway.messages()
