"""The way out for checks, listings and scrapes: small bounded reads, apart from inference.

One session for all of them. aiohttp's defaults are made for browsing: 100 connections, a total
of 300 s, cookies, redirects, proxies from the environment, and idle connections kept for 15 s,
which is longer than engines keep them (uvicorn: 5 s).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from llmgw import __version__
from llmgw.core.config import Account, BaseUrl, Upstream
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.types import Headers

KEEP_IDLE = 4.0
DNS_TTL = 10
MAX_HEAD = 64 * 1024
PARSED_INLINE = 128 * 1024
OURS: Headers = (("user-agent", f"llmgw/{__version__}"), ("accept-encoding", "identity"))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and the body, or as much of it as may be read."""

    status: int
    body: bytes
    is_whole: bool


@dataclass(slots=True)
class _Progress:
    """How far one call came: a timeout means another thing before there is a connection."""

    connected: bool = False
    answered: bool = False


class WatchClient:
    """Reads small documents from upstreams. Make it inside a running loop; `close` it."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_IDLE, ttl_dns_cache=DNS_TTL
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            max_line_size=MAX_HEAD,
            max_field_size=MAX_HEAD,
            trace_configs=[_tracing()],
        )

    async def get(self, url: str, headers: Headers, *, within: float, max_bytes: int) -> Reply:
        """Read at most `max_bytes`, and no longer than `within` seconds.

        Raises `UpstreamError`: CONNECT, LOST, TIMEOUT, CUT or INVALID, with words of ours.
        """
        progress = _Progress()
        try:
            async with asyncio.timeout(within):
                return await self._read(url, headers, max_bytes, progress)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise _fault(error, progress) from None

    async def close(self) -> None:
        await self._session.close()

    async def _read(
        self, url: str, headers: Headers, max_bytes: int, progress: _Progress
    ) -> Reply:
        async with self._session.get(
            URL(url, encoded=True),  # the path prefix goes out as it was configured
            headers=CIMultiDict(headers),
            allow_redirects=False,
            trace_request_ctx=progress,
        ) as response:
            progress.answered = True
            body = bytearray()
            async for data in response.content.iter_any():
                body += data
                if len(body) > max_bytes:
                    response.close()
                    return Reply(response.status, bytes(body[:max_bytes]), is_whole=False)
            coding = response.headers.get("content-encoding", "identity").strip().lower()
            return _decoded(Reply(response.status, bytes(body), is_whole=True), coding, max_bytes)


async def parsed(parse: Callable[[bytes], T], body: bytes) -> T:
    """Parse a large document beside the loop: 4 MiB take a quarter of a second."""
    if len(body) <= PARSED_INLINE:
        return parse(body)
    return await asyncio.to_thread(parse, body)


def headers_for(upstream: Upstream) -> Headers:
    """What a request to this upstream carries: ours, then its configured ones, its credential."""
    configured = upstream.headers if isinstance(upstream, Account) else ()
    fixed = {name for name, _ in (*configured, *upstream.credential)}
    ours = tuple(line for line in OURS if line[0] not in fixed)
    return (*ours, *configured, *upstream.credential)


def address(url: BaseUrl, path: str) -> str:
    return f"{url}{path}"


def _decoded(reply: Reply, coding: str, max_bytes: int) -> Reply:
    """`identity` was asked for; some proxies compress all the same. Never past the limit."""
    if coding in ("", "identity") or not reply.body:
        return reply
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise UpstreamError(FaultKind.INVALID, "answer in a coding that was not asked for")
    try:
        inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, by its head
        body = inflate.decompress(reply.body, max_bytes + 1)
    except zlib.error:
        raise UpstreamError(FaultKind.INVALID, "answer that does not decompress") from None
    if len(body) > max_bytes:
        return Reply(reply.status, body[:max_bytes], is_whole=False)
    if not inflate.eof:
        raise UpstreamError(FaultKind.CUT, "answer cut short")
    return Reply(reply.status, body, is_whole=True)


def _fault(error: Exception, progress: _Progress) -> UpstreamError:
    match error:
        case TimeoutError() if not progress.connected:
            return UpstreamError(FaultKind.CONNECT, "connect timed out")
        case TimeoutError():
            return UpstreamError(FaultKind.TIMEOUT, "no whole answer in time")
        case aiohttp.ClientConnectorDNSError():
            return UpstreamError(FaultKind.CONNECT, "name not found")
        case aiohttp.ClientSSLError():
            return UpstreamError(FaultKind.CONNECT, "no TLS connection")
        case aiohttp.ClientConnectorError():
            return UpstreamError(FaultKind.CONNECT, "connection refused or unreachable")
        case aiohttp.ServerDisconnectedError() | OSError() if not progress.answered:
            return UpstreamError(FaultKind.LOST, "closed without an answer")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | OSError():
            return UpstreamError(FaultKind.CUT, "answer cut short")
        case _:
            return UpstreamError(FaultKind.INVALID, "answer that is not HTTP")


def _tracing() -> aiohttp.TraceConfig:
    async def connecting(_session: aiohttp.ClientSession, context: Any, _params: object) -> None:
        context.trace_request_ctx.connected = False

    async def connected(_session: aiohttp.ClientSession, context: Any, _params: object) -> None:
        context.trace_request_ctx.connected = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_start.append(connecting)
    tracing.on_connection_create_end.append(connected)
    tracing.on_connection_reuseconn.append(connected)
    return tracing
