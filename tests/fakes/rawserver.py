"""A scripted server on raw TCP: what it sends, and when it closes, is up to the test.

    async def play(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nhi")

    async with RawServer(play) as server:
        ...  # server.port, server.requests, server.peers

`play` runs once for each connection. When it returns the connection is closed cleanly, unless the
peer was reset before. An assertion that fails in it fails the test when the server is left.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, Self

CERTIFICATE = Path(__file__).with_name("loopback.pem")  # of localhost and 127.0.0.1, and its key
NOW = struct.pack("ii", 1, 0)  # SO_LINGER: close by a reset


class Received(NamedTuple):
    """One request, as its bytes came."""

    head: bytes  # without the empty line
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    def values(self, name: str) -> list[str]:
        """The values of a header, whatever case its name was sent in."""
        lines = [one.partition(b":") for one in self.head.split(b"\r\n")[1:]]
        found = [value for key, _, value in lines if key.lower() == name.encode()]
        return [value.strip().decode("latin-1") for value in found]


class Peer:
    """One accepted connection."""

    def __init__(
        self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = len(server.peers)  # 0 for the first connection
        self.reader = reader
        self._server = server
        self._writer = writer
        self.over = asyncio.Event()  # the script has ended, be it because the client left

    async def request(self) -> Received:
        """Read one whole request; raises IncompleteReadError when the client closes instead."""
        head = (await self.reader.readuntil(b"\r\n\r\n"))[:-4]
        received = Received(head, b"")
        for length in received.values("content-length"):
            received = Received(head, await self.reader.readexactly(int(length)))
        self._server.requests.append(received)
        self._server.asked.set()
        return received

    async def send(self, *pieces: bytes) -> None:
        """Send each piece as a packet of its own, as far as the client reads them apart."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0)

    def half_close(self) -> None:
        self._writer.write_eof()

    def reset(self) -> None:
        """Close by a reset (RST), not by an orderly end."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
        self._writer.transport.abort()

    async def left(self) -> bytes:
        """Wait until the client has closed or reset; what it sent before that is returned."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (OSError, asyncio.CancelledError):
            return  # the client was faster, or the test is over

    @property
    def _socket(self) -> socket.socket:
        return self._writer.get_extra_info("socket")


Play = Callable[[Peer], Awaitable[None]]


class RawServer:
    """Listens on a free loopback port while entered."""

    def __init__(
        self, play: Play, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.port = 0
        self.peers: list[Peer] = []
        self.requests: list[Received] = []
        self.asked = asyncio.Event()  # a whole request came
        self._play = play
        self._host = host
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[AssertionError] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        """Accept no more: new connections are refused, those that exist go on."""
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        try:
            await self._play(peer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        except AssertionError as failure:
            self._failures.append(failure)
        finally:
            peer.over.set()
            await peer.close()


def answers(*responses: bytes) -> Play:
    """Answer each request of a connection with the next of these, over and over again."""

    async def play(peer: Peer) -> None:
        turn = 0
        while True:
            await peer.request()
            await peer.send(responses[turn % len(responses)])
            turn += 1

    return play


def json_answer(body: bytes = b'{"ok": true}', *, status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} Any\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"
