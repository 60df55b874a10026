"""Timers that end a connection whose client is gone, or takes nothing, and nobody would notice."""

from __future__ import annotations

import asyncio

from llmgw.web.backlog import has_left
from llmgw.web.limits import FLUSH_WITHIN, LOOK_EVERY


class EndWatch:
    """While nothing is read from a socket its end goes unseen: looks for it now and then."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport | None) -> None:
        if self._timer is None and transport is not None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look, transport)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, transport: asyncio.Transport) -> None:
        self._timer = None
        if has_left(transport):
            transport.abort()
        else:
            self.begin(transport)


class FlushWatch:
    """A closed transport waits for its buffer to empty, and a client may never take it."""

    __slots__ = ("_loop", "_timer", "_unsent")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def begin(self, transport: asyncio.Transport | None) -> None:
        if self._timer is None and transport is not None:
            self._unsent = transport.get_write_buffer_size()
            if self._unsent:
                self._timer = self._loop.call_later(FLUSH_WITHIN, self._look, transport)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, transport: asyncio.Transport) -> None:
        self._timer = None
        if transport.get_write_buffer_size() >= self._unsent:
            transport.abort()
        else:
            self.begin(transport)
