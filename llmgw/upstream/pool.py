"""Keep-alive pools, one per scheme, host and port: the inference path out.

A pool bounds what is idle, never what is open: how many calls may run is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from llmgw.core.config import BaseUrl, Upstream
from llmgw.core.errors import UpstreamError
from llmgw.core.http import UpstreamRequest
from llmgw.core.types import Body
from llmgw.upstream.address import connect, literal
from llmgw.upstream.connection import Connection
from llmgw.upstream.dial import adopter, dial
from llmgw.upstream.exchange import Exchange, OnSent
from llmgw.upstream.request import render_head

IDLE_TIMEOUT = 4.0  # below the 5 s after which uvicorn closes (its `timeout_keep_alive`)
MAX_IDLE = 256


class PoolStats(NamedTuple):
    open: int  # idle ones included
    idle: int
    created: int


class Pools:
    """Opens calls to upstreams; an upstream's path prefix has no part in where it connects."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        idle_timeout: float = IDLE_TIMEOUT,
        max_idle: int = MAX_IDLE,
    ) -> None:
        self._tls = tls
        self._idle_timeout = idle_timeout
        self._max_idle = max_idle
        self._pools: dict[tuple[str, str, int], Pool] = {}

    async def open(
        self,
        upstream: Upstream,
        request: UpstreamRequest,
        *,
        connect_timeout: float,
        header_timeout: float | None,
        on_sent: OnSent | None = None,
        fresh: bool = False,
    ) -> Exchange:
        """Send the request and wait for the response head; with `fresh` on a new connection.

        A reused connection that the peer closes before any response byte is repeated once on a
        new one, whatever the method, and `on_sent` is called again.
        Raises `UpstreamError`, and ValueError for a request that can't be written safely.
        """
        head = render_head(upstream.url, request)
        pool = self._pool(upstream.url)
        connection = None if fresh else pool.acquire()
        if connection is not None:
            exchange = Exchange(connection, request.method)
            try:
                return await exchange.ask(
                    head, request.body, header_timeout=header_timeout, on_sent=on_sent
                )
            except UpstreamError:
                if not exchange.stale:
                    raise
        exchange = Exchange(await pool.connect(connect_timeout), request.method)
        return await exchange.ask(
            head, request.body, header_timeout=header_timeout, on_sent=on_sent
        )

    def render(self, upstream: Upstream, request: UpstreamRequest) -> bytes:
        """The head of the request as `open` sends it. Raises ValueError for what can't be."""
        return render_head(upstream.url, request)

    def pool(self, upstream: Upstream) -> Pool:
        """For whoever asks it often, until a reload (`keep`)."""
        return self._pool(upstream.url)

    def keep(self, urls: Iterable[BaseUrl]) -> None:
        """After a reload: connections to other URLs close, once their call has ended."""
        kept = {_origin(url) for url in urls}
        for origin in self._pools.keys() - kept:
            self._pools.pop(origin).retire()

    def close(self) -> None:
        """At stop: every connection closes now; calls still running are cut."""
        for pool in self._pools.values():
            pool.abort()
        self._pools.clear()

    def stats(self) -> dict[BaseUrl, PoolStats]:
        """What is open to each scheme, host and port; the keys have no path prefix."""
        return {BaseUrl(*origin): pool.stats() for origin, pool in self._pools.items()}

    def _pool(self, url: BaseUrl) -> Pool:
        origin = _origin(url)
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = Pool(
                url, tls=self._tls, idle_timeout=self._idle_timeout, max_idle=self._max_idle
            )
        return pool


class Pool:
    """The connections to one scheme, host and port; the one idle for the shortest goes first."""

    def __init__(
        self, url: BaseUrl, *, tls: ssl.SSLContext | None, idle_timeout: float, max_idle: int
    ) -> None:
        self._url = url
        self._tls = tls
        self._idle_timeout = idle_timeout
        self._max_idle = max_idle
        self._loop = asyncio.get_running_loop()
        self._adopt = adopter()
        self._address = literal(url) if url.scheme == "http" else None  # that can be dialled
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()  # the one idle for the longest first
        self._created = 0
        self._retired = False
        self._sweeper: asyncio.TimerHandle | None = None

    def acquire(self) -> Connection | None:
        """An idle connection that its peer has probably not closed yet."""
        fresh = self._loop.time() - self._idle_timeout
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since > fresh and not connection.transport.is_closing():
                return connection
            connection.drop()
        return None

    def begin(self, head: bytes, body: Body, *, within: float) -> Exchange | None:
        """POST at once, or as soon as a connection is there, which takes `within` seconds at the
        most; None: it takes a task."""
        connection = self.acquire() or self._dial(within)
        if connection is None:
            return None
        exchange = Exchange(connection, "POST")
        exchange.send(head, body)
        return exchange

    async def connect(self, within: float) -> Connection:
        connection = await connect(
            self._url, lambda: Connection(self), within=within, tls=self._tls
        )
        self._created += 1
        if not connection.gone:
            self._open.add(connection)
        return connection

    def _dial(self, within: float) -> Connection | None:
        if self._address is None or self._adopt is None:
            return None
        connection = Connection(self)
        try:
            connection.dial = dial(self._address, connection, self._adopt, within=within)
        except OSError:  # whoever can wait will learn it again, and tell
            return None
        self._created += 1
        self._open.add(connection)
        return connection

    def take_back(self, connection: Connection) -> None:
        if self._retired:
            connection.drop()
            return
        if len(self._idle) >= self._max_idle:
            self._idle[0].drop()
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._idle_timeout, self._sweep)

    def forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def retire(self) -> None:
        """Close what is idle now, and what is busy when its call has ended."""
        self._retired = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._idle):
            connection.drop()

    def abort(self) -> None:
        self.retire()
        for connection in tuple(self._open):
            connection.cut()

    def stats(self) -> PoolStats:
        return PoolStats(len(self._open), len(self._idle), self._created)

    def _sweep(self) -> None:
        """One timer for all: a timer per connection would be paid for by every request."""
        self._sweeper = None
        expired = self._loop.time() - self._idle_timeout
        while self._idle and self._idle[0].idle_since <= expired:
            self._idle[0].drop()
        if self._idle:
            due = self._idle[0].idle_since + self._idle_timeout
            self._sweeper = self._loop.call_at(due, self._sweep)


def _origin(url: BaseUrl) -> tuple[str, str, int]:
    return url[:3]  # a path prefix is none of it
