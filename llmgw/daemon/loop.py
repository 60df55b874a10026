"""The event loop of the process: asyncio's own, with less between a ready socket and its protocol.

uvloop's (libuv's) looks at up to 48 rounds of 1,024 ready sockets before it calls anything that
was called soon: with that many busy streams new ones wait for seconds. asyncio's serves each
ready socket once and then whatever waits. What it costs more for an event is won back here:
sockets are read while epoll's answer is gone through, without a handle, a queue and a context for
each read.
"""

from __future__ import annotations

import asyncio
import socket
from selectors import EpollSelector
from typing import Any, cast

import uvloop

from llmgw.daemon.transport import SocketTransport
from llmgw.daemon.turn import Turner


class FairLoop(asyncio.SelectorEventLoop):
    """Serves each ready socket once a turn."""

    _turner: Turner | None = None

    def __init__(self) -> None:
        selector = EpollSelector()
        super().__init__(selector)
        turner = self._turner = Turner(self, selector)
        self.watch, self.unwatch = turner.watch, turner.unwatch
        self.watch_writes, self.unwatch_writes = turner.watch_writes, turner.unwatch_writes

    def set_debug(self, enabled: bool) -> None:
        if self._turner is not None:
            self._turner.measures = enabled
        super().set_debug(enabled)

    def stop(self) -> None:
        if self._turner is not None:
            self._turner.halts = True
        super().stop()

    def adopt(self, sock: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        """Give the protocol its transport for a socket that is connected, at once."""
        SocketTransport(self, sock, protocol, None, None).start(None)

    def _accept_connection(
        self,
        make: Any,
        sock: Any,
        tls: Any = None,
        server: Any = None,
        backlog: int = 100,
        *rest: Any,
    ) -> None:
        """As asyncio's own, which takes a task and a future for each. All that wait are taken:
        past saturation a listener has its turn once in many."""
        if tls is not None:
            super()._accept_connection(make, sock, tls, server, backlog, *rest)  # type: ignore[misc]
            return
        for _ in range(backlog):
            try:
                came, peer = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # asyncio's will meet the same, once, and waits for a second then
                super()._accept_connection(make, sock, None, server, 1, *rest)  # type: ignore[misc]
                return
            try:
                came.setblocking(False)
                SocketTransport(self, came, make(), {"peername": peer}, server).start(None)
            except BaseException:
                came.close()
                raise

    def _make_socket_transport(
        self,
        sock: Any,
        protocol: asyncio.BaseProtocol,
        waiter: Any = None,
        *,
        extra: Any = None,
        server: Any = None,
    ) -> asyncio.BaseTransport:
        made = SocketTransport(self, sock, protocol, extra, server)
        self.call_soon(made.start, waiter)
        return cast(asyncio.BaseTransport, made)

    def _run_once(self) -> None:
        cast(Turner, self._turner).run()


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """`asyncio` or `uvloop`."""
    return uvloop.new_event_loop() if kind == "uvloop" else FairLoop()
