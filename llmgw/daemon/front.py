"""Both doors of the gateway, for requests and for metrics, and the listeners they have now."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from socket import socket
from typing import Protocol

from llmgw.core.config import GatewayConfig
from llmgw.daemon.doors import Change, open_change
from llmgw.daemon.inherit import Inheritance
from llmgw.daemon.sockets import Listener

log = logging.getLogger("llmgw")


class Server(Protocol):
    """What a door needs of an HTTP server."""

    async def start(self, sockets: Sequence[socket]) -> None:
        """Serve on these listening sockets, beside those it serves on already."""

    async def stop_listening(self, sockets: Sequence[socket] | None = None) -> None:
        """Accept what waits on these (None: on all) and close them; connections go on."""

    async def drain(self, within: float, /) -> None:
        """Let what has begun end, at most this long."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """Sockets that are bound for a configuration which does not count yet."""

    http: Change
    metrics: Change

    def undo(self) -> None:
        self.http.undo()
        self.metrics.undo()


@dataclass(frozen=True, slots=True)
class Listeners:
    """What listens now, by purpose."""

    http: tuple[Listener, ...] = ()
    metrics: tuple[Listener, ...] = ()

    @classmethod
    def inherited(cls, inheritance: Inheritance) -> Listeners:
        return cls(inheritance.http, inheritance.metrics)

    def open(self, config: GatewayConfig) -> Opening:
        """Bind what the configuration adds. Raises `ListenFailed`, and then nothing is left."""
        http = open_change("gateway.listen", self.http, config.listen)
        try:
            metrics = open_change("gateway.metrics_listen", self.metrics, config.metrics_listen)
        except Exception:
            http.undo()
            raise
        return Opening(http, metrics)


class Front:
    """The two servers and what they listen on."""

    def __init__(self, http: Server, metrics: Server) -> None:
        self._http = http
        self._metrics = metrics
        self.listeners = Listeners()

    async def start(self, opening: Opening) -> None:
        """Serve on all of it; a predecessor may have left what is listed no more."""
        await self._http.start(_sockets(opening.http.serving))
        await self._metrics.start(_sockets(opening.metrics.serving))
        self.listeners = Listeners(opening.http.serving, opening.metrics.serving)
        _close((*opening.http.dropped, *opening.metrics.dropped))

    async def change(self, opening: Opening) -> None:
        """New addresses serve before the dropped ones end."""
        await self._http.start(_sockets(opening.http.opened))
        await self._metrics.start(_sockets(opening.metrics.opened))
        self.listeners = Listeners(opening.http.serving, opening.metrics.serving)
        for server, change in ((self._http, opening.http), (self._metrics, opening.metrics)):
            if change.dropped:
                await server.stop_listening(_sockets(change.dropped))
                _remove(change.dropped)

    async def stop_listening(self, *, handed_over: bool) -> None:
        """Requests are no longer taken. Metrics are, to the end, unless a successor shows its
        own on the same socket, which also keeps the files of unix sockets."""
        await self._http.stop_listening()
        if handed_over:
            await self._metrics.stop_listening()
        else:
            _remove(self.listeners.http)

    async def drain(self, within: float) -> None:
        await self._http.drain(within)

    async def close(self, *, handed_over: bool) -> None:
        for server in (self._http, self._metrics):
            try:
                await server.close()
            except TimeoutError:  # the process ends all the same
                log.error("connections did not end")
        if not handed_over:
            _remove(self.listeners.metrics)


def _sockets(listeners: Sequence[Listener]) -> list[socket]:
    return [sock for one in listeners for sock in one.sockets]


def _remove(listeners: Sequence[Listener]) -> None:
    for one in listeners:
        one.remove()


def _close(listeners: Sequence[Listener]) -> None:
    for one in listeners:
        one.close()
