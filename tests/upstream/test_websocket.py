"""Websockets to upstreams, against raw servers and aiohttp's own."""

from __future__ import annotations

import asyncio

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.frames import (
    Closed,
    Message,
    Opcode,
    close_payload,
    control_frame,
    frame_head,
)
from llmgw.core.http import Rejection
from llmgw.core.pulse import GONE_AFTER, PING_EVERY
from llmgw.upstream.handshake import accept_of
from llmgw.upstream.websocket import Sockets, UpstreamSocket
from tests.builders import node
from tests.fakes.patience import until
from tests.fakes.rawserver import Peer, RawServer

TEXT = b"\x81\x05hello"


async def switch(peer: Peer, *more: bytes) -> None:
    asked = await peer.request()
    accept = accept_of(asked.values("sec-websocket-key")[0])
    head = "HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    await peer.send(f"{head}sec-websocket-accept: {accept}\r\n\r\n".encode() + b"".join(more))


async def frame(peer: Peer) -> tuple[int, bytes]:
    """One short masked frame."""
    first, second = await peer.reader.readexactly(2)
    mask = await peer.reader.readexactly(4)
    hidden = await peer.reader.readexactly(second & 0x7F)
    return first & 0xF, bytes(one ^ mask[at % 4] for at, one in enumerate(hidden))


async def connect(
    server: RawServer, *, sockets: Sockets | None = None, **options
) -> UpstreamSocket | Rejection:
    opener = Sockets() if sockets is None else sockets
    return await opener.open(
        node("a", server.port),
        target="/v1/responses",
        headers=(("via", "v"),),
        max_bytes=options.pop("max_bytes", 1000),
        connect_timeout=1.0,
        handshake_timeout=options.pop("handshake_timeout", 1.0),
        **options,
    )


async def test_messages_come_whole_and_in_order_also_right_behind_the_handshake():
    async def play(peer):
        await switch(peer, TEXT, b"\x02\x01a", control_frame(Opcode.PING, b"p"), b"\x80\x01b")
        await frame(peer)

    async with RawServer(play) as server:
        socket = await connect(server)

        assert await socket.receive() == Message(b"hello")
        assert await socket.receive() == Message(b"ab", is_text=False)


async def test_a_ping_is_answered_while_nobody_receives():
    async def play(peer):
        await switch(peer, control_frame(Opcode.PING, b"p"))
        assert await frame(peer) == (Opcode.PONG, b"p")
        await peer.send(TEXT)

    async with RawServer(play) as server:
        socket = await connect(server)
        assert await socket.receive() == Message(b"hello")


async def test_what_is_sent_is_masked_and_whole():
    async def play(peer):
        await switch(peer)
        assert await frame(peer) == (Opcode.TEXT, b"up")
        assert await frame(peer) == (Opcode.BINARY, b"\x00")
        await peer.send(TEXT)

    async with RawServer(play) as server:
        socket = await connect(server)
        await socket.send(Message(b"up"))
        await socket.send(Message(b"\x00", is_text=False))
        assert await socket.receive() == Message(b"hello")


async def test_what_came_before_a_close_is_read_first():
    async def play(peer):
        await switch(peer, TEXT, control_frame(Opcode.CLOSE, close_payload(4000, "why")))
        assert await frame(peer) == (Opcode.CLOSE, close_payload(4000))

    async with RawServer(play) as server:
        sockets = Sockets()
        socket = await connect(server, sockets=sockets)

        assert await socket.receive() == Message(b"hello")
        assert await socket.receive() == Closed(4000, "why")
        assert await socket.receive() == socket.ended == Closed(4000, "why")
        await socket.send(Message(b"nobody hears it"))
        await server.peers[0].over.wait()
        await asyncio.sleep(0)
        assert len(sockets) == 0


async def test_our_close_says_why_and_forgets_what_was_not_read():
    said = asyncio.get_running_loop().create_future()

    async def play(peer):
        await switch(peer, TEXT, TEXT)
        said.set_result(await frame(peer))

    async with RawServer(play) as server:
        socket = await connect(server)
        await socket.receive()

        socket.close(1001, "bye")
        socket.close(1000)

        assert await socket.receive() == Closed(1001, "bye")
        assert await said == (Opcode.CLOSE, close_payload(1001, "bye"))


async def test_what_waits_can_be_dropped():
    async def play(peer):
        await switch(peer, TEXT, TEXT)
        await frame(peer)
        await peer.send(b"\x81\x01z")

    async with RawServer(play) as server:
        socket = await connect(server)
        await socket.drop()
        await socket.send(Message(b"next"))

        assert await socket.receive() == Message(b"z")


async def test_a_message_over_the_limit_is_refused_with_1009():
    async def play(peer):
        await switch(peer, frame_head(Opcode.TEXT, 1001))
        assert await frame(peer) == (Opcode.CLOSE, close_payload(1009))

    async with RawServer(play) as server:
        socket = await connect(server, max_bytes=1000)
        assert (await socket.receive()).code == 1009
        await server.peers[0].over.wait()


async def test_a_connection_that_is_lost_ends_with_1006():
    async def play(peer):
        await switch(peer)
        peer.reset()

    async with RawServer(play) as server:
        socket = await connect(server)
        assert await socket.receive() == Closed(1006)


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_a_refusal_is_told_with_its_body(status):
    async def play(peer):
        await peer.request()
        await peer.send(f"HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\n{{}}".encode())

    async with RawServer(play) as server:
        found = await connect(server)

        assert isinstance(found, Rejection)
        assert (found.head.status, found.body) == (status, b"{}")


async def silent(peer):
    await peer.request()
    await peer.left()


async def hangs_up(peer):
    await peer.request()


async def lies(peer):
    await peer.request()
    await peer.send(b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n")


async def babbles(peer):
    await peer.request()
    await peer.send(b"NONSENSE\r\n\r\n")


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        pytest.param(silent, FaultKind.TIMEOUT, id="silence"),
        pytest.param(hangs_up, FaultKind.LOST, id="closed before an answer"),
        pytest.param(lies, FaultKind.INVALID, id="a 101 without proof"),
        pytest.param(babbles, FaultKind.INVALID, id="no HTTP"),
    ],
)
async def test_a_handshake_that_fails(play, kind):
    async with RawServer(play) as server:
        sockets = Sockets()
        with pytest.raises(UpstreamError) as error:
            await connect(server, sockets=sockets, handshake_timeout=0.1)

        assert error.value.kind is kind
        await until(lambda: len(sockets) == 0)


async def test_nobody_there():
    async with RawServer(silent) as server:
        server.stop()
        await asyncio.sleep(0)
        with pytest.raises(UpstreamError) as error:
            await connect(server)

    assert error.value.kind is FaultKind.CONNECT


async def test_a_silent_upstream_is_pinged_and_then_given_up():
    async def play(peer):
        await switch(peer)
        assert await frame(peer) == (Opcode.PING, b"")
        await peer.left()

    async with RawServer(play) as server:
        socket = await connect(server)
        now = asyncio.get_running_loop().time()
        socket.beat(now)  # the handshake was heard

        socket.beat(now + PING_EVERY)
        await asyncio.sleep(0.01)
        socket.beat(now + GONE_AFTER)

        assert await socket.receive() == Closed(1006)


async def test_an_upstream_that_takes_nothing_holds_its_sender():
    go_on = asyncio.Event()

    async def play(peer):
        await switch(peer)
        await go_on.wait()
        await peer.left()

    async with RawServer(play) as server:
        socket = await connect(server, max_bytes=2**26)
        big = Message(b"x" * 2**25)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await socket.send(big)

        socket.abort()
        go_on.set()


async def test_all_that_are_open_can_be_closed():
    async def play(peer):
        await switch(peer)
        await peer.left()

    async with RawServer(play) as server:
        sockets = Sockets()
        socket = await connect(server, sockets=sockets)
        assert len(sockets) == 1

        sockets.close()

        assert await socket.receive() == Closed(1006)
        assert len(sockets) == 0


async def test_the_chosen_subprotocol_is_known():
    async def play(peer):
        asked = await peer.request()
        accept = accept_of(asked.values("sec-websocket-key")[0])
        lines = ("upgrade: websocket", "connection: upgrade", "sec-websocket-protocol: a")
        head = "\r\n".join(("HTTP/1.1 101 X", *lines, f"sec-websocket-accept: {accept}", "", ""))
        await peer.send(head.encode())
        await peer.left()

    async with RawServer(play) as server:
        socket = await connect(server, protocols=("b", "a"))

        assert socket.protocol == "a"
        socket.abort()


async def test_a_refusal_whose_body_does_not_end_counts_as_far_as_it_came(monkeypatch):
    monkeypatch.setattr("llmgw.upstream.websocket.REFUSAL_WITHIN", 0.01)

    async def play(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 403 X\r\ncontent-length: 9\r\n\r\nabc")
        await peer.left()

    async with RawServer(play) as server:
        refused = await connect(server)

    assert isinstance(refused, Rejection)
    assert (refused.head.status, refused.body) == (403, b"abc")


async def test_an_upstream_that_asks_and_takes_nothing_is_not_answered_without_bound():
    async def play(peer):
        await switch(peer)
        peer._writer.transport.pause_reading()
        for _ in range(100):
            await peer.send(control_frame(Opcode.PING, b"p" * 125) * 400)
        await peer.send(TEXT)
        await peer.left()

    async with RawServer(play) as server:
        socket = await connect(server)
        sending = asyncio.create_task(socket.send(Message(b"x" * 10_000_000)))

        assert await socket.receive() == Message(b"hello")

        assert socket.transport.get_write_buffer_size() < 11_000_000
        socket.abort()
        await sending
