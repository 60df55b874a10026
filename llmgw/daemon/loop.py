"""The event loop of the process, by the configuration's word.

uvloop's (libuv's) looks at up to 48 rounds of 1,024 ready sockets before it calls anything that
was called soon: with more than that many busy streams new ones wait for seconds. asyncio's own
serves each ready socket once and then whatever waits; what it costs more for an event is won back
in the selector below, which hands over handles instead of keys.
"""

from __future__ import annotations

import asyncio
import math
import select
from selectors import EpollSelector
from typing import Any, cast

import uvloop

_NOT_READABLE = ~select.EPOLLIN
_NOT_WRITABLE = ~select.EPOLLOUT


class _RawEpoll(EpollSelector):
    """Gives what epoll gives: descriptors and masks."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            wait = -1.0
        elif timeout <= 0:
            wait = 0.0
        else:
            wait = math.ceil(timeout * 1e3) * 1e-3  # epoll counts milliseconds
        keys: dict[int, Any] = self._fd_to_key  # type: ignore[attr-defined]
        try:
            return cast(list[Any], self._selector.poll(wait, len(keys) or 1))  # type: ignore[attr-defined]
        except InterruptedError:
            return []


class FairLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, with less between a ready socket and its callback."""

    def __init__(self) -> None:
        super().__init__(_RawEpoll())

    def _process_events(self, event_list: list[tuple[int, int]]) -> None:
        keys = self._selector._fd_to_key  # type: ignore[attr-defined]
        ready = self._ready  # type: ignore[attr-defined]
        for fd, event in event_list:
            key = keys.get(fd)
            if key is None:
                continue
            reader, writer = key.data
            if reader is not None and event & _NOT_WRITABLE:
                if reader._cancelled:
                    self._remove_reader(fd)  # type: ignore[attr-defined]
                else:
                    ready.append(reader)
            if writer is not None and event & _NOT_READABLE:
                if writer._cancelled:
                    self._remove_writer(fd)  # type: ignore[attr-defined]
                else:
                    ready.append(writer)


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """`asyncio` or `uvloop`."""
    return uvloop.new_event_loop() if kind == "uvloop" else FairLoop()
