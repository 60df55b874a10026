"""Websocket clients that keep to nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from llmgw.core.config import StreamsConfig, WebsocketConfig
from llmgw.core.policy import KeyRing
from tests.fakes.live import (
    TOKEN,
    Provider,
    Whole,
    completed,
    create,
    created,
    delta,
    gateway,
    turns,
    whole,
)
from tests.fakes.patience import until
from tests.fakes.raw_client import RawClient, request
from tests.fakes.wire_frames import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    RawSocket,
    close,
    frame,
    text,
    upgrade,
)

TURN = json.dumps(create()).encode()
PINGS = frame(PING, b"p" * 125) * 1000
MIB = 1024 * 1024


async def refuses(provider, ws):
    raise AssertionError("nobody may be asked")


async def waits(provider, ws):
    """Shows something, and then nothing."""
    await provider.heard(ws)
    for event in (created(), delta("h")):
        await ws.send_str(json.dumps(event))
    await provider.heard(ws)


@asynccontextmanager
async def client_of(running: Whole, **options) -> AsyncIterator[RawSocket]:
    client = await RawSocket.connect(("127.0.0.1", running.port))
    try:
        await client.shake_hands(token=TOKEN, **options)
        yield client
    finally:
        client.reset()


def buffered(running: Whole) -> int:
    """Bytes that wait for clients."""
    transports = (one.transport for one in running.server._made.live)
    return sum(one.get_write_buffer_size() for one in transports if one is not None)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(text(create(), mask=None), 1002, id="not masked"),
        pytest.param(text(create(), reserved=4), 1002, id="compressed, as nobody agreed"),
        pytest.param(text(create(), reserved=1), 1002, id="a reserved bit"),
        pytest.param(frame(3, b"x"), 1002, id="an unknown opcode"),
        pytest.param(frame(11, b"x"), 1002, id="an unknown control opcode"),
        pytest.param(frame(PING, b"x", fin=False), 1002, id="a ping in fragments"),
        pytest.param(frame(PING, b"x" * 126), 1002, id="a long ping"),
        pytest.param(frame(0, b"x"), 1002, id="a continuation of nothing"),
        pytest.param(
            frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), 1002, id="a message in a message"
        ),
        pytest.param(frame(TEXT, size=2**26 + 1), 1009, id="a byte too long"),
        pytest.param(frame(TEXT, size=2**63), 1009, id="longer than anything"),
        pytest.param(frame(BINARY, b"x"), 1003, id="binary"),
        pytest.param(frame(TEXT, b'{"type":"\xff"}'), 1007, id="no UTF-8"),
        pytest.param(close(1005), 1002, id="close 1005"),
        pytest.param(close(1006), 1002, id="close 1006"),
        pytest.param(close(1015), 1002, id="close 1015"),
        pytest.param(close(999), 1002, id="close 999"),
        pytest.param(close(5000), 1002, id="close 5000"),
        pytest.param(frame(CLOSE, b"x"), 1002, id="half a close code"),
        pytest.param(close(1000, b"\xff"), 1007, id="a close reason that is no UTF-8"),
        pytest.param(close(1000) + close(1001), 1000, id="closed twice"),
        pytest.param(close(1000) + text(create()), 1000, id="a turn behind the close"),
        pytest.param(close(4321), 4321, id="a code of its own"),
        pytest.param(close(), None, id="closed without a code"),
        pytest.param(frame(TEXT, TURN) + frame(3, b"x"), 1002, id="a turn, and nonsense"),
    ],
)
async def test_what_breaks_the_protocol_is_closed_with_its_code_and_asks_nobody(sent, code):
    async with gateway(Provider(refuses)) as running, client_of(running) as client:
        client.send(sent)

        found = await client.frame()

        assert (found.opcode, found.code, found.is_masked) == (CLOSE, code, False)
        assert running.attempts == []


@pytest.mark.parametrize("cut", [1, 3])
async def test_a_message_may_come_in_any_cut_and_in_fragments_with_pings_between(cut):
    sent = (
        frame(TEXT, TURN[:5], fin=False)
        + frame(PING, b"a")
        + frame(0, TURN[5:9], fin=False)
        + frame(0, b"", fin=False)
        + frame(PING, b"b")
        + frame(0, TURN[9:])
    )
    async with gateway(Provider(turns(whole()))) as running, client_of(running) as client:
        for at in range(0, len(sent), cut):
            client.send(sent[at : at + cut])
            await asyncio.sleep(0)

        found = [await client.frame() for _ in range(5)]

        assert [one.opcode for one in found] == [PONG, PONG, TEXT, TEXT, TEXT]
        assert [one.payload for one in found[:2]] == [b"a", b"b"]


async def test_a_turn_may_come_in_the_same_packet_as_the_handshake():
    async with gateway(Provider(turns(whole()))) as running:
        client = await RawSocket.connect(("127.0.0.1", running.port))
        client.send(upgrade(token=TOKEN) + text(create()))

        assert (await client.reply(head_only=True)).status == 101
        assert [await client.event() for _ in range(3)] == whole()
        client.reset()


async def test_turns_in_one_write_are_served_one_after_another():
    answers = [whole(f"resp_{at}") for at in range(50)]
    a = Provider(turns(*answers))
    async with gateway(a) as running, client_of(running) as client:
        client.send(b"".join(text(create(str(at))) for at in range(50)))

        events = [await client.event() for _ in range(150)]

        assert events == [event for answer in answers for event in answer]
        assert [one["input"] for one in a.frames] == [str(at) for at in range(50)]


async def test_compression_that_is_offered_is_not_taken():
    offer = "permessage-deflate; client_max_window_bits"
    async with gateway(Provider(turns(whole()))) as running:
        client = await RawSocket.connect(("127.0.0.1", running.port))

        reply = await client.ask(
            upgrade(token=TOKEN, Sec_WebSocket_Extensions=offer), head_only=True
        )

        assert reply.status == 101
        assert "sec-websocket-extensions" not in reply.headers
        client.reset()


async def test_pings_of_a_client_that_takes_nothing_are_not_answered_without_bound():
    a = Provider(turns(whole()))
    async with gateway(a) as running, client_of(running) as client:
        client._writer.transport.pause_reading()
        for _ in range(160):
            client.send(PINGS)  # 20 MB, more than the kernel holds for both of us
            await client._writer.drain()
        client.send(text(create()))

        await until(lambda: a.frames)

        assert buffered(running) < MIB


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(TEXT, b"[" * 200), id="no turns"),
        pytest.param(text({**create(), "generate": False}), id="warm-ups"),
    ],
)
async def test_answers_of_ours_wait_for_a_client_that_takes_nothing(sent):
    async with gateway(Provider(refuses)) as running, client_of(running) as client:
        client._writer.transport.pause_reading()
        client.send(sent * 100_000)
        most = 0
        for _ in range(60):
            await asyncio.sleep(0.005)
            most = max(most, buffered(running))

        assert 0 < most < MIB


async def test_a_client_that_takes_nothing_is_cut_in_the_end():
    streams = StreamsConfig(client_stall=0.05)
    async with (
        gateway(Provider(refuses), streams=streams) as running,
        client_of(running) as client,
    ):
        client._writer.transport.pause_reading()
        client.send(frame(TEXT, b"[" * 200) * 100_000)

        await until(lambda: running.server.connections == 0)


@pytest.mark.parametrize("sent", [b"", frame(TEXT, b"x" * 10, size=2**20), b"\x81"])
async def test_a_client_that_says_half_and_leaves_leaves_nothing(sent):
    async with gateway(Provider(refuses)) as running:
        async with client_of(running) as client:
            client.send(sent)
            await asyncio.sleep(0)
            client.shut_sending()
            await client.rest()

        await until(lambda: running.server.connections == 0)
        assert len(running.gateway.wheel) == 0


@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
async def test_a_client_that_leaves_inside_a_turn_ends_its_upstream(how):
    a = Provider(waits)
    async with gateway(a) as running, client_of(running) as client:
        client.send(text(create()))
        assert [(await client.event())["type"] for _ in range(2)]

        match how:
            case "close":
                client.send(close(1000))
            case "half-close":
                client.shut_sending()
            case "reset":
                client.reset()

        await asyncio.wait_for(a.left.wait(), 5)
        await until(lambda: running.server.connections == 0)
        assert running.attempts == [[("p/a", "cancelled", None)]]
        assert running.gateway.registry.in_flight(running.config.accounts[0]) == 0


async def test_a_client_that_leaves_before_anything_is_visible_ends_its_upstream_too():
    a = Provider(turns([created()]))
    async with gateway(a) as running, client_of(running) as client:
        client.send(text(create()))
        await until(lambda: a.frames)

        client.reset()

        await asyncio.wait_for(a.left.wait(), 5)
        await until(lambda: running.attempts == [[("p/a", "cancelled", None)]])


async def test_a_key_that_is_revoked_behind_turns_that_wait_closes_with_1008():
    async with gateway(Provider(waits)) as running, client_of(running) as client:
        client.send(text(create()) * 10)
        await client.event()

        running.gateway.keyring = KeyRing({})
        client.send(frame(TEXT, b"x" * 200_000))
        running.sockets.close()  # the running turn ends

        found = await client.frame()
        while found.opcode == TEXT:
            found = await client.frame()
        assert (found.opcode, found.code) == (CLOSE, 1008)
        client.send(close(1008))
        assert await client.rest() == b""


async def test_a_refused_upgrade_leaves_the_connection_to_other_requests():
    async with gateway(Provider(refuses)) as running:
        client = await RawClient.connect(("127.0.0.1", running.port))

        refused = await client.ask(upgrade(token="wrong"))
        after = await client.ask(request("GET", "/livez"))

        assert (refused.status, after.status) == (401, 200)
        client.close()


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
async def test_an_upgrade_that_is_not_taken_is_a_plain_request(protocol):
    headers = [("Connection", "Upgrade"), ("Upgrade", protocol)]
    async with gateway(Provider(refuses)) as running:
        client = await RawClient.connect(("127.0.0.1", running.port))

        first = await client.ask(request("GET", "/livez", headers=headers))
        body = b'{"model":"m1"}'
        second = await client.ask(request("POST", "/v1/responses", body=body, headers=headers))

        assert (first.status, second.status) == (200, 401)
        client.close()


async def test_a_frame_as_long_as_the_limit_goes_through_and_back():
    size = 8 * MIB
    answer = [created(), delta("y" * size), completed()]
    a = Provider(turns(answer))
    limits = WebsocketConfig(max_frame_bytes=size + 1000)
    async with gateway(a, websocket=limits) as running:
        client = await running.connect()

        assert await client.turn(create("x" * size)) == answer
        assert len(a.frames[0]["input"]) == size
