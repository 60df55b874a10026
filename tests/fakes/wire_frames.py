"""Websocket frames as bytes, bad ones too, and a raw client and upstream that speak them."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from llmgw.upstream.handshake import accept_of
from tests.fakes.patience import WITHIN
from tests.fakes.raw_client import RawClient, Reply, request
from tests.fakes.rawserver import Peer

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MASK = b"\x01\x02\x03\x04"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Frame(NamedTuple):
    opcode: int
    payload: bytes
    is_masked: bool = False

    @property
    def code(self) -> int | None:
        """Of a close frame; None where it has none."""
        return struct.unpack(">H", self.payload[:2])[0] if self.payload else None


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    reserved: int = 0,
    mask: bytes | None = MASK,
    size: int | None = None,
) -> bytes:
    """`size` may promise another length than the payload has."""
    size = len(payload) if size is None else size
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    masked = 0 if mask is None else 0x80
    if size < 126:
        head = bytes((first, masked | size))
    elif size < 65536:
        head = struct.pack(">BBH", first, masked | 126, size)
    else:
        head = struct.pack(">BBQ", first, masked | 127, size)
    if mask is None:
        return head + payload
    return head + mask + bytes(one ^ mask[at % 4] for at, one in enumerate(payload))


def close(code: int | None = None, reason: bytes = b"", **options: Any) -> bytes:
    payload = b"" if code is None else struct.pack(">H", code) + reason
    return frame(CLOSE, payload, **options)


def text(event: object, **options: Any) -> bytes:
    return frame(TEXT, json.dumps(event).encode(), **options)


def frames_in(data: bytes) -> Iterator[Frame]:
    """The whole frames in `data`."""
    while len(data) >= 2:
        found = _split(data)
        if found is None:
            return
        one, data = found
        yield one


def _split(data: bytes) -> tuple[Frame, bytes] | None:
    size, at = data[1] & 0x7F, 2
    if size == 126:
        size, at = struct.unpack(">H", data[2:4])[0], 4
    elif size == 127:
        size, at = struct.unpack(">Q", data[2:10])[0], 10
    mask = None
    if data[1] & 0x80:
        mask, at = data[at : at + 4], at + 4
    if len(data) < at + size:
        return None
    payload = data[at : at + size]
    if mask is not None:
        payload = bytes(one ^ mask[index % 4] for index, one in enumerate(payload))
    return Frame(data[0] & 0xF, payload, mask is not None), data[at + size :]


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    async with asyncio.timeout(WITHIN):
        head = await reader.readexactly(2)
        size = head[1] & 0x7F
        more = await reader.readexactly({126: 2, 127: 8}.get(size, 0))
        size = int.from_bytes(more, "big") if more else size
        mask = await reader.readexactly(4 if head[1] & 0x80 else 0)
        payload = await reader.readexactly(size)
    found = _split(head + more + mask + payload)
    assert found is not None
    return found[0]


def upgrade(
    path: str = "/v1/responses", *, token: str | None = None, **changes: str | None
) -> bytes:
    lines = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": KEY,
    }
    if token is not None:
        lines["Authorization"] = f"Bearer {token}"
    lines |= {name.replace("_", "-"): value for name, value in changes.items()}
    return request("GET", path, headers=[(name, v) for name, v in lines.items() if v is not None])


class RawSocket(RawClient):
    """A websocket client that sends what the test says."""

    async def shake_hands(self, **options: Any) -> Reply:
        reply = await self.ask(upgrade(**options), head_only=True)
        assert reply.status == 101, reply.head
        return reply

    async def frame(self) -> Frame:
        return await read_frame(self.reader)

    async def event(self) -> Any:
        found = await self.frame()
        assert found.opcode == TEXT, found
        return json.loads(found.payload)


async def accept_upgrade(peer: Peer, *, more: bytes = b"", lines: str = "") -> None:
    """As an upstream: answer the handshake with 101, and `more` in the same packet."""
    asked = await peer.request()
    (key,) = asked.values("sec-websocket-key")
    head = (
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        f"sec-websocket-accept: {accept_of(key)}\r\n{lines}\r\n"
    )
    await peer.send(head.encode() + more)


async def heard(peer: Peer) -> Frame:
    """As an upstream: the next frame that is no ping."""
    while (found := await read_frame(peer.reader)).opcode == PING:
        pass
    return found
