"""Realtime sessions: chosen while connecting, then relayed both ways verbatim."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import WSMsgType, WSServerHandshakeError

from llmgw.core.policy import KeyRing
from llmgw.core.types import RouteClass
from llmgw.runtime import realtime
from tests.fakes.live import TOKEN, Provider, gateway, keyring
from tests.fakes.patience import at_rest, until

PATH = "/v1/realtime?model=m1"
MISS = {"error": {"code": "model_not_found", "type": "x", "param": "model", "message": "m"}}


async def echo(provider, ws):
    """Text with a mark, binary as it is; `bye` closes with a code of its own."""
    while True:
        data = await provider.heard(ws)
        if data == {"type": "bye"}:
            await ws.close(code=4321, message=b"enough")
            return
        if isinstance(data, bytes):
            await ws.send_bytes(data)
        else:
            await ws.send_str(json.dumps({"echo": data}))


async def test_text_and_binary_pass_both_ways_as_they_are():
    a = Provider(echo)
    async with gateway(a) as running:
        client = await running.connect("/v1/realtime?intent=x&model=m1&y=%20z")
        await client.send({"type": "session.update", "n": 1.50})
        await client.socket.send_bytes(b"\x00\xff" * 70_000)

        assert await client.receive() == {"echo": {"type": "session.update", "n": 1.5}}
        assert await client.socket.receive_bytes() == b"\x00\xff" * 70_000
        assert a.targets == ["/v1/realtime?intent=x&model=m1&y=%20z"]
        assert a.upgrades[0]["authorization"] == "Bearer up-CANARY-a"


async def test_the_upstreams_close_code_is_carried_over():
    async with gateway(Provider(echo)) as running:
        client = await running.connect(PATH)
        await client.send({"type": "bye"})

        found = await client.socket.receive()
        assert (found.type, found.data, found.extra) == (WSMsgType.CLOSE, 4321, "enough")
        await until(lambda: running.attempts)
        assert running.attempts == [[("p/a", "succeeded", None)]]
        assert running.rows[0].lane is RouteClass.WEBSOCKET
        assert (running.rows[0].route, running.rows[0].status) == ("/v1/realtime", 101)


async def test_the_clients_close_code_is_carried_over():
    a = Provider(echo)
    async with gateway(a) as running:
        client = await running.connect(PATH)

        await client.socket.close(code=4000)

        await until(a.left.is_set)
        assert a.close_codes == [4000]
        await until(lambda: running.attempts)


async def test_an_upstream_that_is_lost_closes_the_client_with_1011_and_nobody_else_is_asked():
    async def dies(provider, ws):
        await provider.heard(ws)
        ws._req.transport.abort()

    a, b = Provider(dies), Provider(echo)
    async with gateway(a, b) as running:
        client = await running.connect(PATH)
        await client.send({"type": "x"})

        assert await client.closed() == 1011
        await until(lambda: running.attempts)
        assert running.attempts == [[("p/a", "failed", "upstream_cut")]]
        assert not b.upgrades


@pytest.mark.parametrize(
    ("status", "refusal", "reason"),
    [
        pytest.param(404, MISS, "upstream_model_unavailable", id="it does not serve the model"),
        pytest.param(404, None, "websocket_unsupported", id="it has no such route"),
        pytest.param(403, None, "websocket_unsupported", id="as an engine says it"),
        pytest.param(401, None, "upstream_unauthorized", id="its credential"),
        pytest.param(503, None, "upstream_error", id="it is down"),
    ],
)
async def test_another_assignment_serves_while_connecting(status, refusal, reason):
    a, b = Provider(refuses=status, refusal=refusal), Provider(echo)
    async with gateway(a, b) as running:
        client = await running.connect(PATH)
        await client.send({"n": 1})

        assert await client.receive() == {"echo": {"n": 1}}
        await client.close()
        await until(lambda: running.attempts)
        assert running.attempts == [
            [("p/a", "retryable_failed", reason), ("p/b", "succeeded", None)]
        ]


@pytest.mark.parametrize(
    ("status", "refusal", "answered"),
    [
        pytest.param(429, None, 429, id="full"),
        pytest.param(404, MISS, 404, id="no such model"),
        pytest.param(404, None, 426, id="no such route"),
    ],
)
async def test_the_last_refusal_is_the_status_of_the_clients_handshake(status, refusal, answered):
    async with gateway(Provider(refuses=status, refusal=refusal)) as running:
        with pytest.raises(WSServerHandshakeError) as refused:
            await running.connect(PATH)

        assert refused.value.status == answered


async def test_the_subprotocol_is_the_upstreams_choice_and_the_key_stays_here():
    a = Provider(echo)
    async with gateway(a) as running:
        offered = ("realtime", f"openai-insecure-api-key.{TOKEN}", "openai-beta.realtime-v1")
        client = await running.connect(PATH, token=None, protocols=offered)

        assert client.socket.protocol == "realtime"
        assert a.upgrades[0]["sec-websocket-protocol"] == "realtime, openai-beta.realtime-v1"


async def test_the_default_model_is_put_into_the_query():
    a = Provider(echo)
    async with gateway(a, default="m1") as running:
        await running.connect("/v1/realtime?intent=x")

        assert a.targets == ["/v1/realtime?model=m1&intent=x"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/v1/realtime", {}, 400, id="no model"),
        pytest.param(PATH, {"sec-websocket-version": "12"}, 426, id="another version"),
        pytest.param(PATH, {"via": "1.1 llmgw-abc123"}, 508, id="a loop"),
    ],
)
async def test_a_handshake_that_is_refused(path, headers, status):
    async with gateway(Provider(echo)) as running:
        with pytest.raises(WSServerHandshakeError) as refused:
            await running.connect(path, headers=headers)

        assert refused.value.status == status


async def test_a_plain_get_is_told_to_upgrade():
    async with gateway(Provider(echo)) as running:
        url = f"http://127.0.0.1:{running.port}{PATH}"
        answer = await running.session.get(url)

        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")


async def test_a_key_without_the_model_is_refused():
    async with gateway(Provider(echo)) as running:
        running.gateway.keyring = keyring(models=("other",))
        with pytest.raises(WSServerHandshakeError) as refused:
            await running.connect(PATH)

        assert refused.value.status == 403


@pytest.mark.parametrize(("ends", "code"), [("draining", 1001), ("revoked", 1008)])
async def test_a_quiet_session_is_ended(ends, code, monkeypatch):
    monkeypatch.setattr(realtime, "QUIET", 0.05)
    a = Provider(echo)
    async with gateway(a) as running:
        client = await running.connect(PATH)
        await client.send({"n": 1})
        await client.receive()

        if ends == "draining":
            running.draining = True
        else:
            running.gateway.keyring = KeyRing({})

        assert await client.closed() == code
        await until(a.left.is_set)
        assert a.close_codes == [1001]


async def test_a_slow_upstream_stops_the_reading_of_its_client():
    go_on = asyncio.Event()

    async def slow(provider, ws):
        ws._req.transport.pause_reading()
        await go_on.wait()
        ws._req.transport.resume_reading()
        await echo(provider, ws)

    async with gateway(Provider(slow)) as running:
        client = await running.connect(PATH)
        data = b"x" * 1_000_000
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for _ in range(60):
                await client.socket.send_bytes(data)
                sent += 1

        flooding = asyncio.create_task(flood())
        await until(lambda: sent)
        assert await at_rest(lambda: sent) < 60

        go_on.set()
        for _ in range(60):
            assert await client.socket.receive_bytes() == data
        await flooding
