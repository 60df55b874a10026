"""The client's end of a websocket, on a real connection."""

from __future__ import annotations

import asyncio

import pytest

from llmgw.core.frames import Closed, Message
from llmgw.core.pulse import GONE_AFTER, PING_EVERY
from llmgw.web.table import Page
from llmgw.web.upgrade import parse_upgrade
from llmgw.web.websocket import COPIED_BYTES, ClientWebSocket, accept
from tests.fakes.patience import until
from tests.fakes.wire_frames import BINARY, CLOSE, PING, PONG, TEXT, RawSocket, close, frame
from tests.web.conftest import Door, opened


class Ended(Exception):
    """The client has left."""


class Host:
    """Serves websockets at `/ws`: each is kept, and handed to `play`."""

    def __init__(self, gateway, play, *, max_bytes: int = 100_000) -> None:
        self.sockets: list[ClientWebSocket] = []
        self.ends: list[str] = []
        self._play = play
        self._max_bytes = max_bytes
        self.door = Door(gateway, (Page("/ws", {"GET": self._serve}),))

    async def client(self) -> RawSocket:
        client = await RawSocket.connect(self.door.address)
        self.door.clients.append(client)
        await client.shake_hands(path="/ws")
        return client

    async def _serve(self, incoming) -> None:
        upgrade = parse_upgrade(incoming)
        socket = accept(incoming, upgrade, protocol=None, max_bytes=self._max_bytes)
        self.sockets.append(socket)
        try:
            await self._play(socket)
            await socket.finished()
            self.ends.append("finished")
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise


async def echo(socket: ClientWebSocket) -> None:
    while isinstance(found := await socket.receive(), Message):
        await socket.send(found)


async def idle(socket: ClientWebSocket) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("size", [0, 125, 126, 65535, COPIED_BYTES + 1])
@pytest.mark.parametrize("opcode", [TEXT, BINARY], ids=["text", "binary"])
async def test_messages_of_any_length_go_both_ways(gateway, size, opcode):
    host = Host(gateway, echo)
    async with opened(host.door):
        client = await host.client()

        client.send(frame(opcode, b"x" * size))

        assert await client.frame() == (opcode, b"x" * size, False)


async def test_a_clients_close_is_answered_with_its_code_and_ends_the_connection(gateway):
    host = Host(gateway, echo)
    async with opened(host.door):
        client = await host.client()
        client.send(close(4321, b"enough"))

        found = await client.frame()

        assert (found.opcode, found.code) == (CLOSE, 4321)
        assert await client.rest() == b""
        assert host.ends == ["finished"]


async def test_what_came_before_the_close_is_answered_first(gateway):
    host = Host(gateway, echo)
    async with opened(host.door):
        client = await host.client()
        client.send(frame(TEXT, b"a") + close(1000))

        assert [(await client.frame()).opcode for _ in range(2)] == [TEXT, CLOSE]


async def test_a_handler_that_does_not_receive_ends_with_the_clients_close(gateway):
    host = Host(gateway, idle)
    async with opened(host.door):
        client = await host.client()
        client.send(close(1000))

        assert (await client.frame()).code == 1000
        await until(lambda: host.ends == ["cancelled"])


async def test_a_close_of_ours_waits_for_the_clients_answer(gateway):
    async def leave(socket):
        socket.close(1001, "stopping")
        assert await socket.receive() == Closed(1001, "stopping")

    host = Host(gateway, leave)
    async with opened(host.door):
        client = await host.client()

        found = await client.frame()

        assert (found.code, found.payload[2:]) == (1001, b"stopping")
        assert host.ends == []
        client.send(close(1001))
        assert await client.rest() == b""
        assert host.ends == ["finished"]


async def test_a_client_that_does_not_answer_a_close_is_not_waited_for(gateway, monkeypatch):
    monkeypatch.setattr("llmgw.web.websocket.CLOSE_WITHIN", 0.01)

    async def leave(socket):
        socket.close(1001)

    host = Host(gateway, leave)
    async with opened(host.door):
        client = await host.client()

        await client.frame()

        await until(lambda: host.door.server.connections == 0)


async def test_after_a_close_of_ours_nothing_is_said_any_more(gateway):
    async def speaks_on(socket):
        socket.close(1001)
        socket.close(1008)
        await socket.send(Message(b"late"))
        socket.on_ping(b"late")

    host = Host(gateway, speaks_on)
    async with opened(host.door):
        client = await host.client()

        assert (await client.frame()).code == 1001
        client.send(close(1001))
        assert await client.rest() == b""


async def test_whoever_breaks_the_protocol_has_a_moment_to_read_why(gateway, monkeypatch):
    monkeypatch.setattr("llmgw.web.websocket.CLOSE_WITHIN", 0.05)
    host = Host(gateway, idle)
    async with opened(host.door):
        client = await host.client()
        client.send(frame(TEXT, b"x", mask=None))

        assert (await client.frame()).code == 1002
        client.send(b"\xff" * 1000)
        assert await client.rest() == b""
        await until(lambda: host.ends == ["cancelled"])


async def test_a_message_over_the_limit_is_refused_before_it_came(gateway):
    host = Host(gateway, echo, max_bytes=10)
    async with opened(host.door):
        client = await host.client()
        client.send(frame(TEXT, b"x" * 10))
        assert (await client.frame()).payload == b"x" * 10

        client.send(frame(TEXT, size=11))

        assert (await client.frame()).code == 1009


async def test_a_silent_client_is_pinged_and_then_given_up(gateway):
    host = Host(gateway, idle)
    async with opened(host.door):
        client = await host.client()
        (socket,) = host.sockets
        now = asyncio.get_running_loop().time()

        socket.beat(now + PING_EVERY)
        assert (await client.frame()).opcode == PING
        client.send(frame(PONG))
        await until(lambda: socket._pulse._heard)
        socket.beat(now + GONE_AFTER)
        assert host.ends == []
        socket.beat(now + 2 * GONE_AFTER + 1)

        await until(lambda: host.ends == ["cancelled"])


async def test_many_messages_that_nobody_reads_are_left_in_the_kernel(gateway):
    host = Host(gateway, idle)
    async with opened(host.door):
        client = await host.client()
        (connection,) = host.door.server._made.live
        for _ in range(4):
            client.send(frame(TEXT, b"x" * 50_000))

        await until(lambda: not connection.is_reading)

        client.reset()
        await until(lambda: host.ends == ["cancelled"])
