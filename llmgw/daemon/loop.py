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
from collections import deque
from heapq import heapify, heappop
from selectors import EpollSelector
from time import monotonic
from typing import Any, Final, cast

import uvloop

from llmgw.daemon.transport import SocketTransport

MOST_EVENTS = 256  # sockets that are served in a turn; the others come first in the next
TURNS = 64
LONGEST_WAIT = 3600.0  # seconds

# Numbers of epoll_ctl(2), which select.EPOLLIN and EPOLLOUT would have to be looked up for.
_IN: Final = 1
_OUT: Final = 4


class FairLoop(asyncio.SelectorEventLoop):
    """Serves each ready socket once a turn."""

    def __init__(self) -> None:
        selector = EpollSelector()
        self._reading: dict[int, SocketTransport] = {}  # by descriptor
        self._poll: Any = cast(Any, selector)._selector.poll
        self._keys: dict[int, Any] = cast(Any, selector)._fd_to_key
        self._halts = False
        super().__init__(selector)
        # Asyncio's own, which it looks up by name at each turn.
        self._queue: deque[Any] = cast(Any, self)._ready
        self._timers: list[Any] = cast(Any, self)._scheduled

    def set_debug(self, enabled: bool) -> None:
        self._measures = enabled
        super().set_debug(enabled)

    def stop(self) -> None:
        self._halts = True
        super().stop()

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
        """Some turns: to go back to asyncio after each would cost as much as to read a socket."""
        if self._measures:  # each callback
            super()._run_once()  # type: ignore[misc] # asyncio has no stub of it
            self._timers = cast(Any, self)._scheduled
            return
        for _ in range(TURNS):
            self._turn()
            if self._halts:
                self._halts = False
                return

    def _turn(self) -> None:
        """As asyncio's: wait, serve the sockets, then the timers, then who waits."""
        queue, timers = self._queue, self._timers
        if timers and timers[0]._cancelled:
            self._drop_cancelled()
        wait = -1.0
        if queue or self._halts:
            wait = 0.0
        elif timers:
            wait = timers[0]._when - monotonic()
            if wait < 0.0:
                wait = 0.0
            elif wait > LONGEST_WAIT:
                wait = LONGEST_WAIT
        try:
            events = self._poll(wait, MOST_EVENTS)
        except InterruptedError:
            events = []
        self._serve(events)
        if timers:
            now = monotonic()
            if timers[0]._when <= now:
                self._wake_timers(now)
        for _ in range(len(queue)):  # not those that come meanwhile
            handle = queue.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        loop, timers = cast(Any, self), self._timers
        while timers and timers[0]._cancelled:
            heappop(timers)._scheduled = False
            loop._timer_cancelled_count -= 1

    def _wake_timers(self, now: float) -> None:
        loop, timers = cast(Any, self), self._timers
        while timers and timers[0]._when <= now:
            handle = heappop(timers)
            handle._scheduled = False
            self._queue.append(handle)
        if loop._timer_cancelled_count * 2 > len(timers) > 100:  # they would be kept for long
            for one in timers:
                if one._cancelled:
                    one._scheduled = False
            timers[:] = [one for one in timers if not one._cancelled]
            heapify(timers)
            loop._timer_cancelled_count = 0

    def _serve(self, events: list[tuple[int, int]]) -> None:
        reading = self._reading
        for fd, event in events:
            transport = reading.get(fd)
            if transport is not None and event & ~_OUT:
                transport.read_ready()
                if event == _IN:
                    continue
            key = self._keys.get(fd)
            if key is not None:
                self._process(fd, event, *key.data, is_read=transport is not None)

    def _process(self, fd: int, event: int, reader: Any, writer: Any, *, is_read: bool) -> None:
        loop = cast(Any, self)
        if reader is not None and event & ~_OUT and not is_read:
            if reader._cancelled:
                loop._remove_reader(fd)
            else:
                self._queue.append(reader)
        if writer is not None and event & ~_IN:
            if writer._cancelled:
                loop._remove_writer(fd)
            else:
                self._queue.append(writer)


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """`asyncio` or `uvloop`."""
    return uvloop.new_event_loop() if kind == "uvloop" else FairLoop()
