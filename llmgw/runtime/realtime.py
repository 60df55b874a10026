"""A realtime session: chosen like any request, then relayed both ways verbatim.

Which upstream serves is decided while connecting, before the client is told anything; from then
on there is no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.frames import CloseCode, Closed, carried_over
from llmgw.observe.metrics import OPEN_WEBSOCKETS
from llmgw.runtime.answer import Broken, Errand, Refused, Result, Served, Tools
from llmgw.runtime.connecting import Connecting
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.sockets import Socket, Sockets, UpstreamSocket
from llmgw.runtime.tasks import race
from llmgw.runtime.watchman import Draining, Watchman

QUIET = 2.0  # seconds without a message in either direction: between two turns
PATIENCE = 30.0  # a microphone is never quiet: it is not waited for any longer than this
SWITCHING = 101

Accept = Callable[[str | None], Socket]
"""Upgrade the client, with the subprotocol that the upstream chose."""


class RealtimeAttempts:
    """Connects to a candidate, and relays once one accepts."""

    def __init__(
        self,
        gateway: Gateway,
        sockets: Sockets,
        *,
        token: str | None,
        protocols: tuple[str, ...],
        accept: Accept,
        draining: Draining,
    ) -> None:
        self._gateway = gateway
        self._sockets = sockets
        self._token = token
        self._protocols = protocols
        self._accept = accept
        self._draining = draining

    async def __call__(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result:
        leave = tools.registry.enter(candidate.upstream)
        try:
            return await self._serve(tools, errand, candidate)
        except UpstreamError as error:
            return Refused(Fault(error.kind))
        finally:
            leave()

    async def _serve(self, tools: Tools, errand: Errand, candidate: Candidate) -> Result:
        connecting = Connecting(tools, self._sockets, errand.config, explained=True)
        upstream = await connecting.open(candidate, errand.call, protocols=self._protocols)
        if isinstance(upstream, Refused):
            return upstream
        try:
            client = self._accept(upstream.protocol)
            watchman = Watchman(self._gateway, client, self._token, self._draining)
            relay = RealtimeRelay(self._gateway, client, upstream, watchman)
            closed = await relay.run()
        finally:
            upstream.close(CloseCode.GOING_AWAY)
        failed = closed.broken or closed.code in (CloseCode.ABNORMAL, CloseCode.INTERNAL_ERROR)
        return Broken(Fault(FaultKind.CUT), SWITCHING) if failed else Served(SWITCHING)


class RealtimeRelay:
    """Both directions at the pace of the slower side; the end of one is the end of the other."""

    def __init__(
        self, gateway: Gateway, client: Socket, upstream: UpstreamSocket, watchman: Watchman
    ) -> None:
        self._gateway = gateway
        self._client = client
        self._upstream = upstream
        self._watchman = watchman
        self._moved_at = self._looked_at = gateway.wheel.now
        self._stall = gateway.config.streams.client_stall
        self._closed_by_upstream = Closed(CloseCode.OK)

    async def run(self) -> Closed:
        """How the upstream ended it; 1000 where the client did."""
        OPEN_WEBSOCKETS.inc()
        self._gateway.wheel.add(self)
        try:
            await race(self._from_client(), self._from_upstream())
        finally:
            self._gateway.wheel.discard(self)
            OPEN_WEBSOCKETS.dec()
        return self._closed_by_upstream

    def tick(self, now: float) -> None:
        self._upstream.beat(now)
        self._watchman.tick(now)
        if now - self._moved_at >= QUIET or now - self._looked_at >= PATIENCE:
            self._looked_at = now
            self._watchman.look()

    async def _from_client(self) -> None:
        closed = await self._move(self._client, self._upstream)
        ours = self._watchman.has_ended or closed.broken
        self._upstream.close(*_words(Closed(CloseCode.GOING_AWAY) if ours else closed))

    async def _from_upstream(self) -> None:
        closed = await self._move(self._upstream, self._client)
        self._closed_by_upstream = closed
        self._client.close(*_words(carried_over(closed)))

    async def _move(self, source: Socket, sink: Socket) -> Closed:
        while True:
            found = await source.receive()
            if isinstance(found, Closed):
                return found
            self._moved_at = self._gateway.wheel.now
            try:
                async with asyncio.timeout(self._stall):
                    await sink.send(found)
            except TimeoutError:  # it takes nothing: to say so would be in vain
                sink.abort()
                return Closed(CloseCode.GOING_AWAY)


def _words(closed: Closed) -> tuple[int, str]:
    return closed.code, closed.reason
