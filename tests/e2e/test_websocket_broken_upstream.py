"""Upstreams that take websockets, and break them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from llmgw.core.config import StreamsConfig
from tests.builders import config
from tests.fakes.live import (
    Provider,
    Whole,
    completed,
    configured,
    create,
    created,
    delta,
    turns,
    whole,
)
from tests.fakes.patience import until
from tests.fakes.rawserver import Peer, Play, RawServer
from tests.fakes.wire_frames import BINARY, TEXT, accept_upgrade, close, frame, heard, text

NOT_TEXT = b'{"type":"response.output_text.delta","delta":"\xff"}'


def plain(event: object) -> bytes:
    return text(event, mask=None)


CREATED = plain(created())
VISIBLE = CREATED + plain(delta("h"))

BREAKS = [
    pytest.param(frame(BINARY, b"x", mask=None), id="binary"),
    pytest.param(frame(TEXT, NOT_TEXT, mask=None), id="no UTF-8"),
    pytest.param(frame(TEXT, b"{}", reserved=4, mask=None), id="compressed"),
    pytest.param(frame(3, b"x", mask=None), id="an unknown opcode"),
    pytest.param(frame(TEXT, b"x", size=2**30, mask=None), id="too long"),
    pytest.param(close(1006, mask=None), id="a close code that must not be sent"),
]
ENDS = [1000, 1001, 1005, 1008, 1011, 1012, 1013, 1015, 4000, None]


def says(*pieces: bytes) -> Play:
    """Accept, hear a frame, and say this."""

    async def play(peer: Peer) -> None:
        await accept_upgrade(peer)
        await heard(peer)
        await peer.send(*pieces)
        await peer.left()

    return play


def answers(data: bytes) -> Play:
    """Instead of a handshake."""

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        await peer.left()

    return play


@asynccontextmanager
async def broken(play: Play, **sections) -> AsyncIterator[tuple[Whole, Provider]]:
    """The first assignment is this, the second a good one."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(RawServer(play))
        second = await stack.enter_async_context(Provider(turns(whole("resp_b"))))
        both = Whole(configured(first, second, **sections))
        yield await stack.enter_async_context(both), second


@pytest.mark.parametrize("said", BREAKS)
async def test_a_protocol_that_is_broken_before_anything_is_visible_moves_on(said):
    async with broken(says(CREATED + said)) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        (tried, _) = running.attempts[0]
        assert tried == ("p/a", "retryable_failed", "upstream_invalid")
        assert running.watch.failed == [], "it was reached"


@pytest.mark.parametrize("said", BREAKS)
async def test_a_protocol_that_is_broken_after_visible_output_ends_the_turn_there(said):
    async with broken(says(VISIBLE + said)) as (running, second):
        client = await running.connect()

        events = await client.turn(create())

        assert events[:2] == [created(), delta("h")]
        assert [(one["type"], one["status"]) for one in events[2:]] == [("error", 502)]
        assert not second.upgrades
        assert [one[1] for one in running.attempts[0]] == ["failed"]
        assert await client.is_quiet()


@pytest.mark.parametrize("code", ENDS)
async def test_a_close_before_anything_is_visible_moves_on(code):
    async with broken(says(CREATED + close(code, mask=None))) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")


@pytest.mark.parametrize("code", [*ENDS, 1009])
async def test_a_close_after_visible_output_ends_the_turn(code):
    async with broken(says(VISIBLE + close(code, mask=None))) as (running, second):
        client = await running.connect()

        events = await client.turn(create())

        assert [one.get("status") for one in events] == [None, None, 502]
        assert not second.upgrades


async def test_a_response_that_ended_before_the_nonsense_is_whole():
    said = b"".join(map(plain, whole())) + frame(3, b"x", mask=None)
    async with broken(says(said)) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole()
        assert running.attempts == [[("p/a", "succeeded", None)]]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 8000, id="no answer, again and again"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", id="no upgrade"),
        pytest.param(
            b"HTTP/1.1 302 X\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", id="elsewhere"
        ),
        pytest.param(
            b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: x\r\n\r\n",
            id="without the proof",
        ),
    ],
)
async def test_a_handshake_that_is_none_moves_on(data):
    async with broken(answers(data)) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert running.attempts[0][0] == ("p/a", "retryable_failed", "upstream_invalid")


async def test_an_extension_that_nobody_offered_moves_on():
    async def play(peer: Peer) -> None:
        await accept_upgrade(peer, lines="sec-websocket-extensions: permessage-deflate\r\n")
        await peer.left()

    async with broken(play) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")


async def test_silence_after_the_handshake_moves_on_where_there_is_a_limit():
    async def play(peer: Peer) -> None:
        await accept_upgrade(peer)
        await peer.left()

    async with broken(play, streams=StreamsConfig(first_event_timeout=0.05)) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert running.attempts[0][0][2] == "upstream_timeout"


async def test_what_came_before_it_was_asked_is_not_its_answer():
    async def play(peer: Peer) -> None:
        await accept_upgrade(peer, more=plain(delta("early")))
        await heard(peer)
        await peer.send(*map(plain, whole()))
        await peer.left()

    async with broken(play) as (running, _):
        client = await running.connect()

        assert await client.turn(create()) == whole()


async def test_an_upstream_that_moves_in_a_reload_is_asked_where_it_is():
    a = Provider(turns(whole("resp_1")))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(a)
        elsewhere = await stack.enter_async_context(Provider(turns(whole("resp_2"))))
        running = await stack.enter_async_context(Whole(configured(a)))
        client = await running.connect()
        await client.turn(create())

        running.gateway.replace(configured(elsewhere), running.gateway.keyring)

        assert await client.turn(create()) == whole("resp_2")
        await until(a.left.is_set)


async def test_an_upstream_that_is_gone_after_a_reload_fails_its_turns_alone():
    a, b = Provider(turns(whole())), Provider(turns(whole("resp_b")))
    async with AsyncExitStack() as stack:
        for one in (a, b):
            await stack.enter_async_context(one)
        running = await stack.enter_async_context(Whole(configured(a, b)))
        client = await running.connect()
        await client.turn(create())

        (left,) = (one for one in running.config.accounts if one.name == "b")
        running.gateway.replace(config(left), running.gateway.keyring)
        (event,) = await client.turn(create())

        assert event["error"]["code"] == "pinned_assignment_unavailable"
        assert not b.upgrades
        assert await (await running.connect()).turn(create()) == whole("resp_b")


async def test_nothing_that_was_said_is_in_a_log_or_a_row(caplog):
    said = plain({"type": "error", "status": 500, "error": {"message": "UP-CANARY", "code": "x"}})
    async with broken(says(said)) as (running, _):
        offered = ("openai-insecure-api-key.gw-CANARY-token",)
        client = await running.connect(token=None, protocols=offered)

        await client.turn(create("PROMPT-CANARY"))
        await client.send('{"PROMPT-CANARY"')
        await client.receive()

        kept = [vars(record) for record in caplog.records]
        assert kept
        assert "CANARY" not in repr(kept)
        assert "CANARY" not in repr(running.database.requests.recorded)
        assert "CANARY" not in json.dumps(completed())
