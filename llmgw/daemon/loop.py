"""The event loop of the process: asyncio's own, with less between a ready socket and its protocol.

uvloop's (libuv's) looks at up to 48 rounds of 1,024 ready sockets before it calls anything that
was called soon: with that many busy streams new ones wait for seconds. asyncio's serves each
ready socket once and then whatever waits. What it costs more for an event is won back here:
sockets are read while epoll's answer is gone through, without a handle, a queue and a context for
each read.
"""

from __future__ import annotations

import asyncio
import heapq
import select
import socket
import time
from selectors import EpollSelector
from typing import Any, cast

import uvloop

from llmgw.daemon.transport import SocketTransport

MOST_EVENTS = 256  # sockets that are served in a turn; the others come first in the next
LONGEST_WAIT = 3600.0  # seconds

_NOT_READABLE = ~select.EPOLLIN
_NOT_WRITABLE = ~select.EPOLLOUT


class FairLoop(asyncio.SelectorEventLoop):
    """Serves each ready socket once a turn."""

    def __init__(self) -> None:
        selector = EpollSelector()
        self._reading: dict[int, SocketTransport] = {}  # by descriptor
        self._poll: Any = cast(Any, selector)._selector.poll
        self._keys: dict[int, Any] = cast(Any, selector)._fd_to_key
        super().__init__(selector)

    def watch(self, fd: int, transport: SocketTransport) -> None:
        """Read it whenever there is something."""
        cast(Any, self)._add_reader(fd, transport.read_ready)
        self._reading[fd] = transport

    def unwatch(self, fd: int) -> None:
        self._reading.pop(fd, None)
        cast(Any, self)._remove_reader(fd)

    def adopt(self, sock: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        """Give the protocol its transport for a socket that is connected, at once."""
        SocketTransport(self, sock, protocol, None, None).start(None)

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
        """One turn, as asyncio's: wait, serve the sockets, then the timers, then who waits."""
        loop = cast(Any, self)
        if loop._debug:  # which measures each callback
            super()._run_once()  # type: ignore[misc] # asyncio has no stub of it
            return
        ready, scheduled = loop._ready, loop._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            loop._timer_cancelled_count -= 1
        wait = -1.0
        if ready or loop._stopping:
            wait = 0.0
        elif scheduled:
            wait = min(max(0.0, scheduled[0]._when - time.monotonic()), LONGEST_WAIT)
        try:
            events = self._poll(wait, MOST_EVENTS)
        except InterruptedError:
            events = []
        self._serve(events)
        if scheduled:
            self._wake_timers(time.monotonic() + loop._clock_resolution)
        for _ in range(len(ready)):  # not those that come meanwhile
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _wake_timers(self, until: float) -> None:
        loop = cast(Any, self)
        scheduled = loop._scheduled
        while scheduled and scheduled[0]._when < until:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            loop._ready.append(handle)
        if loop._timer_cancelled_count * 2 > len(scheduled) > 100:  # they would be kept for long
            left = [one for one in scheduled if not one._cancelled]
            for one in scheduled:
                if one._cancelled:
                    one._scheduled = False
            heapq.heapify(left)
            scheduled[:] = left
            loop._timer_cancelled_count = 0

    def _serve(self, events: list[tuple[int, int]]) -> None:
        reading = self._reading
        for fd, event in events:
            transport = reading.get(fd)
            if transport is not None and event & _NOT_WRITABLE:
                transport.read_ready()
                if event == select.EPOLLIN:
                    continue
            key = self._keys.get(fd)
            if key is not None:
                self._process(fd, event, *key.data, is_read=transport is not None)

    def _process(self, fd: int, event: int, reader: Any, writer: Any, *, is_read: bool) -> None:
        loop = cast(Any, self)
        if reader is not None and event & _NOT_WRITABLE and not is_read:
            if reader._cancelled:
                loop._remove_reader(fd)
            else:
                loop._ready.append(reader)
        if writer is not None and event & _NOT_READABLE:
            if writer._cancelled:
                loop._remove_writer(fd)
            else:
                loop._ready.append(writer)


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """`asyncio` or `uvloop`."""
    return uvloop.new_event_loop() if kind == "uvloop" else FairLoop()
