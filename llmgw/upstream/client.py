"""The way out for checks, listings and scrapes: small bounded reads, apart from inference.

A thousand nodes are asked a thousand times a second: connections are kept from one question to
the next, and nothing is made for a question that the last one may have left behind.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeVar

from llmgw import __version__
from llmgw.core.config import Account, BaseUrl, Upstream
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.http import UpstreamRequest
from llmgw.core.types import Headers
from llmgw.upstream.inquiry import Inquiry, Origin
from llmgw.upstream.names import Names
from llmgw.upstream.reach import reach
from llmgw.upstream.reply import Reply
from llmgw.upstream.request import render_head

KEEP_IDLE = 4.0  # below the 5 s after which uvicorn closes
MOST_SWEPT = 64  # connections that are closed in one step of the event loop
SWEEP_ON = 0.01  # seconds until the next ones are
PARSED_INLINE = 128 * 1024
MOST_RENDERED = 8192  # requests that are kept as bytes: three a node
PLAIN = ("", "identity")
OURS: Headers = (
    ("user-agent", f"llmgw/{__version__}"),
    ("accept", "*/*"),
    ("accept-encoding", "identity"),
)

T = TypeVar("T")


class WatchClient:
    """Reads small documents from upstreams. Make it inside a running loop; `close` it."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, keep_idle: float = KEEP_IDLE) -> None:
        """`keep_idle`: seconds for which a connection waits for its next question."""
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._keep_idle = keep_idle
        self._names = Names()
        self._open: set[Inquiry] = set()
        self._idle: dict[Origin, list[Inquiry]] = {}  # the one idle for the longest first
        self._sweeper = self._loop.call_later(keep_idle / 4, self._sweep)

    async def get(
        self, url: BaseUrl, target: str, headers: Headers, *, within: float, max_bytes: int
    ) -> Reply:
        """Read at most `max_bytes`, and no longer than `within` seconds.

        Redirects are answers like any other. Raises `UpstreamError`: CONNECT, EXHAUSTED, LOST,
        TIMEOUT, CUT or INVALID, with words of ours.
        """
        try:
            request = _rendered(url, target, headers)
        except ValueError:
            raise UpstreamError(FaultKind.INVALID, "request that can't be written") from None
        deadline = self._loop.time() + within
        inquiry = self._kept(url[:3])
        if inquiry is None:
            inquiry = await self._connected(url, within)
        timer = self._loop.call_at(deadline, inquiry.give_up)
        try:
            reply = await inquiry.ask(request, max_bytes=max_bytes)
        except UpstreamError:
            if not inquiry.is_stale:
                raise
            left = deadline - self._loop.time()  # of idle connections there are only so many
            return await self.get(url, target, headers, within=left, max_bytes=max_bytes)
        except asyncio.CancelledError:
            inquiry.drop()
            raise
        finally:
            timer.cancel()
        return reply if reply.coding in PLAIN else _decoded(reply, max_bytes)

    def take_back(self, inquiry: Inquiry) -> None:
        inquiry.idle_since = self._loop.time()
        idle = self._idle.get(inquiry.origin)
        if idle is None:
            self._idle[inquiry.origin] = [inquiry]
        else:
            idle.append(inquiry)

    def forget(self, inquiry: Inquiry) -> None:
        self._open.discard(inquiry)
        idle = self._idle.get(inquiry.origin)
        if idle is not None and inquiry in idle:
            idle.remove(inquiry)

    async def close(self) -> None:
        self._sweeper.cancel()
        for inquiry in tuple(self._open):
            inquiry.drop()
        self._names.close()

    def _kept(self, origin: Origin) -> Inquiry | None:
        """An idle connection that its peer has probably not closed yet."""
        idle = self._idle.get(origin)
        if not idle:
            return None
        inquiry = idle.pop()
        if self._loop.time() - inquiry.idle_since < self._keep_idle:
            return inquiry
        inquiry.drop()
        return None

    async def _connected(self, url: BaseUrl, within: float) -> Inquiry:
        make = partial(Inquiry, self, url[:3])
        inquiry = await reach(url, make, self._names, within=within, tls=self._tls)
        if not inquiry.is_gone:
            self._open.add(inquiry)
        return inquiry

    def _sweep(self) -> None:
        """One timer for all: a timer a connection would be paid for by every question."""
        limit = self._loop.time() - self._keep_idle
        room = MOST_SWEPT
        for origin, idle in tuple(self._idle.items()):
            while room and idle and idle[0].idle_since <= limit:
                idle[0].drop()
                room -= 1
            if not idle:
                del self._idle[origin]
        pause = self._keep_idle / 4 if room else SWEEP_ON
        self._sweeper = self._loop.call_later(pause, self._sweep)


async def parsed(parse: Callable[[bytes], T], body: bytes) -> T:
    """Parse a large document beside the loop: 4 MiB take a quarter of a second."""
    if len(body) <= PARSED_INLINE:
        return parse(body)
    return await asyncio.to_thread(parse, body)


def headers_for(upstream: Upstream) -> Headers:
    """What a request to this upstream carries: ours, then its configured ones, its credential."""
    configured = upstream.headers if isinstance(upstream, Account) else ()
    own = (*configured, *upstream.credential)
    if not own:
        return OURS
    fixed = {name for name, _ in own}
    return (*(line for line in OURS if line[0] not in fixed), *own)


@lru_cache(maxsize=MOST_RENDERED)
def _rendered(url: BaseUrl, target: str, headers: Headers) -> bytes:
    return render_head(url, UpstreamRequest("GET", target, headers))


def _decoded(reply: Reply, max_bytes: int) -> Reply:
    """`identity` was asked for; some proxies compress all the same. Never past the limit."""
    coding = reply.coding
    if not reply.body or not reply.is_whole:
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
