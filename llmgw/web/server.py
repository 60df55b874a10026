"""One door of the gateway: listening sockets, the connections behind them, and their end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, Final

from llmgw.web.backlog import has_waiting
from llmgw.web.protocol import Connections
from llmgw.web.site import Site

BACKLOG: Final = 4096
ACCEPT_TURNS: Final = 1000  # of the loop, for connections that wait on a listener
IDLE_GRACE: Final = 2.0  # a client may be sending its next request just now
TICK: Final = 0.05
END_WITHIN: Final = 1.0  # for handlers that were cancelled


class WebServer:
    """Serves a site. Sockets come bound and listening, and are closed with their listener."""

    def __init__(self, site: Site, **options: Any) -> None:
        self._site = site
        self._options = options
        self._connections: Connections | None = None
        self._listeners: dict[socket.socket, asyncio.Server] = {}

    @property
    def connections(self) -> int:
        return len(self._made.live) if self._connections else 0

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Serve on these, beside those that it serves on already."""
        for sock in sockets:
            self._listeners[sock] = await self._listen(sock)

    async def stop_listening(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Accept what waits on these (None: on all), then close them; connections go on."""
        wanted = tuple(self._listeners) if sockets is None else sockets
        listeners = [(one, self._listeners.pop(one)) for one in wanted if one in self._listeners]
        for sock, listener in listeners:
            await _accept_waiting(sock)
            listener.close()

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - its end is no error
        """Let what has begun end, at most this long. From now on each next response says
        `connection: close`, and a connection without a request is closed after a moment."""
        made = self._made
        made.draining = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        while made.live and loop.time() < began + timeout:
            for one in made.live:
                if one.is_idle and loop.time() >= max(began, one.idle_since) + IDLE_GRACE:
                    one.force_close()
            await asyncio.sleep(TICK)

    async def close(self) -> None:
        """End whatever is left, at once."""
        await self.stop_listening()
        self._made.draining = True
        for one in self._made.live:
            one.abort()
        await self._made.shutdown(END_WITHIN)

    @property
    def _made(self) -> Connections:
        if self._connections is None:  # it needs the running loop
            self._connections = Connections(
                self._site.handle,
                refuse=self._site.refuse,
                take=self._site.take,
                **self._options,
            )
        return self._connections

    async def _listen(self, sock: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        if sock.family == socket.AF_UNIX:
            return await loop.create_unix_server(self._made, sock=sock, backlog=BACKLOG)
        return await loop.create_server(self._made, sock=sock, backlog=BACKLOG)


async def _accept_waiting(sock: socket.socket) -> None:
    """A closed listener resets whoever waits on it, unless another process holds it as well."""
    for _ in range(ACCEPT_TURNS):
        if not has_waiting(sock):
            return
        await asyncio.sleep(0.001)
