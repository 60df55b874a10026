"""The turns of the event loop (`daemon/loop.py`): whatever is done for each socket that is ready.

A class of its own, which is compiled, for a compiled loop can't be referred to weakly.
"""

from __future__ import annotations

from asyncio.log import logger
from collections import deque
from heapq import heapify, heappop
from time import monotonic
from typing import Any, Final

from llmgw.daemon.direct import EVENT_BITS, wait
from llmgw.daemon.transport import SocketTransport

MOST_EVENTS = 256  # sockets that are served in a turn; the others come first in the next
TURNS = 64
LONGEST_WAIT = 3600.0  # seconds

# Numbers of epoll_ctl(2), which select.EPOLLIN and EPOLLOUT would have to be looked up for.
_IN: Final = 1
_OUT: Final = 4

_wait: Final = wait
_BITS: Final = EVENT_BITS
_EVENTS: Final = (1 << EVENT_BITS) - 1


class Turner:
    """Takes the turns of one loop, with what asyncio looks up by name at each of them."""

    def __init__(self, loop: Any, selector: Any) -> None:
        self.halts = False  # the loop is to stop
        self.measures = False  # in debug mode: callbacks that take long are told of
        self._reading: dict[int, SocketTransport] = {}  # by descriptor
        self._writing: dict[int, SocketTransport] = {}  # those that wait to write
        self._loop = loop
        self._epoll: int = selector.fileno()
        self._selector: Any = selector._selector  # epoll itself
        self._keys: dict[int, Any] = selector._fd_to_key
        self._queue: deque[Any] = loop._ready
        self._timers: list[Any] = loop._scheduled

    def watch(self, fd: int, transport: SocketTransport) -> None:
        """Read it whenever there is something."""
        if fd not in self._reading:
            self._reading[fd] = transport
            self._register(fd, known=fd in self._writing)

    def unwatch(self, fd: int) -> None:
        if self._reading.pop(fd, None) is not None:
            self._register(fd, known=True)

    def watch_writes(self, fd: int, transport: SocketTransport) -> None:
        """Tell it once it may write again."""
        if fd not in self._writing:
            self._writing[fd] = transport
            self._register(fd, known=fd in self._reading)

    def unwatch_writes(self, fd: int) -> None:
        if self._writing.pop(fd, None) is not None:
            self._register(fd, known=True)

    def run(self) -> None:
        """Some turns: to go back to asyncio after each would cost as much as to read a socket."""
        for _ in range(TURNS):
            self._turn()
            if self.halts:
                self.halts = False
                return

    def _turn(self) -> None:
        """As asyncio's: wait, serve the sockets, then the timers, then who waits."""
        queue, timers = self._queue, self._timers
        if timers and timers[0]._cancelled:
            self._drop_cancelled()
        seconds = -1.0
        if queue or self.halts:
            seconds = 0.0
        elif timers:
            seconds = timers[0]._when - monotonic()
            if seconds < 0.0:
                seconds = 0.0
            elif seconds > LONGEST_WAIT:
                seconds = LONGEST_WAIT
        self._serve(self._ready(seconds))
        if timers:
            now = monotonic()
            if timers[0]._when <= now:
                self._wake_timers(now)
        for _ in range(len(queue)):  # not those that come meanwhile
            handle = queue.popleft()
            if not handle._cancelled:
                if self.measures:
                    self._measure(handle)
                else:
                    handle._run()

    def _measure(self, handle: Any) -> None:
        """As asyncio's in its debug mode."""
        began = monotonic()
        handle._run()
        took = monotonic() - began
        if took >= self._loop.slow_callback_duration:
            logger.warning("Executing %r took %.3f seconds", handle, took)

    def _register(self, fd: int, *, known: bool) -> None:
        """What is waited for at a socket has changed. Its selector does not know it: what that
        keeps of each would cost as much as the system call."""
        events = (_IN if fd in self._reading else 0) | (_OUT if fd in self._writing else 0)
        try:
            if not known:
                self._selector.register(fd, events)
            elif events:
                self._selector.modify(fd, events)
            else:
                self._selector.unregister(fd)
        except OSError:
            if events:
                raise

    def _ready(self, seconds: float) -> list[int]:
        if _wait is not None:
            return _wait(self._epoll, seconds, MOST_EVENTS)
        try:
            return [
                fd << _BITS | events for fd, events in self._selector.poll(seconds, MOST_EVENTS)
            ]
        except InterruptedError:
            return []

    def _drop_cancelled(self) -> None:
        loop, timers = self._loop, self._timers
        while timers and timers[0]._cancelled:
            heappop(timers)._scheduled = False
            loop._timer_cancelled_count -= 1

    def _wake_timers(self, now: float) -> None:
        loop, timers = self._loop, self._timers
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

    def _serve(self, ready: list[int]) -> None:
        reading = self._reading
        for one in ready:
            fd, event = one >> _BITS, one & _EVENTS
            transport = reading.get(fd)
            if transport is not None and event & ~_OUT:
                transport.read_ready()
                if event == _IN:
                    continue
            writing = self._writing.get(fd)
            if writing is not None and event & ~_IN:
                writing.write_ready()
            key = self._keys.get(fd)
            if key is not None:
                self._process(fd, event, *key.data)

    def _process(self, fd: int, event: int, reader: Any, writer: Any) -> None:
        """Of sockets that are no transport's."""
        loop = self._loop
        if reader is not None and event & ~_OUT:
            if reader._cancelled:
                loop._remove_reader(fd)
            else:
                self._queue.append(reader)
        if writer is not None and event & ~_IN:
            if writer._cancelled:
                loop._remove_writer(fd)
            else:
                self._queue.append(writer)
