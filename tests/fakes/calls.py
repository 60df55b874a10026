"""Calls through real pools to scripted servers, in a line each."""

from __future__ import annotations

import asyncio

from llmgw.core.config import BaseUrl, Node
from llmgw.core.errors import UpstreamError
from llmgw.core.http import UpstreamRequest
from llmgw.core.types import Headers, UpstreamName
from llmgw.upstream.exchange import Exchange, OnSent
from llmgw.upstream.pool import Pools


def node(port: int, *, host: str = "127.0.0.1", scheme: str = "http", prefix: str = "") -> Node:
    return Node(UpstreamName("node"), BaseUrl(scheme, host, port, prefix))


async def call(
    pools: Pools,
    upstream: Node,
    *,
    method: str = "POST",
    headers: Headers = (),
    body: bytes = b"{}",
    connect_timeout: float = 5.0,
    header_timeout: float | None = None,
    on_sent: OnSent | None = None,
) -> Exchange:
    request = UpstreamRequest(method, "/v1/x", headers, body)
    return await pools.open(
        upstream,
        request,
        connect_timeout=connect_timeout,
        header_timeout=header_timeout,
        on_sent=on_sent,
    )


async def read_all(exchange: Exchange) -> bytes:
    parts = []
    while data := await exchange.read():
        parts.append(data)
    return b"".join(parts)


class Collected:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.ends: list[UpstreamError | None] = []
        self.over = asyncio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    def feed(self, data: bytes, chunk: bytes | None = None) -> None:
        assert data
        assert not self.ends
        self.parts.append(data)

    def end(self, fault: UpstreamError | None) -> None:
        self.ends.append(fault)
        self.over.set()
