"""A client of bytes: what it sends is what the test says, what it reads is split and no more."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.patience import WITHIN


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    head: bytes
    version: str = "HTTP/1.1"

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        return self.json["error"]["code"]

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"


def request(
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Sequence[tuple[str, str]] = (),
    version: str = "1.1",
) -> bytes:
    """One whole request; `content-length` is set where there is a body."""
    lines = [f"{method} {path} HTTP/{version}", "Host: gateway"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + (body or b"")


def chat(body: bytes = b'{"model":"m1","messages":[]}', **options) -> bytes:
    return request("POST", "/v1/chat/completions", body=body, **options)


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: tuple[str, int], *, limit: int = 2**16) -> RawClient:
        return cls(*await asyncio.open_connection(*address, limit=limit))

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def ask(self, data: bytes, *, head_only: bool = False) -> Reply:
        self.send(data)
        return await self.reply(head_only=head_only)

    async def reply(self, *, head_only: bool = False) -> Reply:
        async with asyncio.timeout(WITHIN):
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            version, status, _ = first.split(" ", 2)
            headers = {}
            for line in lines:
                name, _, value = line.partition(": ")
                name = name.lower()
                assert name not in headers, f"{name} twice"
                headers[name] = value
            body = b"" if head_only else await self._body(int(status), headers)
        return Reply(int(status), headers, body, head, version)

    async def rest(self) -> bytes:
        """All that still comes, up to the end of the connection."""
        async with asyncio.timeout(WITHIN):
            return await self.reader.read()

    def shut_sending(self) -> None:
        self._writer.write_eof()

    def reset(self) -> None:
        if self._writer.is_closing():
            return
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()

    async def _body(self, status: int, headers: dict[str, str]) -> bytes:
        if status < 200 or status in (204, 304):
            return b""
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("transfer-encoding") == "chunked":
            return b"".join([chunk async for chunk in self._chunks()])
        return await self.reader.read()

    async def _chunks(self):
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            chunk = await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
            if not size:
                return
            yield chunk
