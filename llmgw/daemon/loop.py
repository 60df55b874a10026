"""The event loop of the process: asyncio's own, with less between a ready socket and its protocol.

uvloop's (libuv's) looks at up to 48 rounds of 1,024 ready sockets before it calls anything that
was called soon: with that many busy streams new ones wait for seconds. asyncio's serves each
ready socket once and then whatever waits. What it costs more for an event is won back here:
sockets are read while epoll's answer is gone through, without a handle, a queue and a context for
each read.
"""

from __future__ import annotations

import asyncio
import math
import select
from asyncio import selector_events
from collections.abc import Callable
from selectors import EpollSelector
from typing import Any, cast

import uvloop

MOST_READ = 64 * 1024  # bytes at once: room for that is made for every read

_NOT_READABLE = ~select.EPOLLIN
_NOT_WRITABLE = ~select.EPOLLOUT
_Buffered = asyncio.BufferedProtocol
_Base: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]


class _Epoll(EpollSelector):
    """Gives what epoll gives: descriptors and masks."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            wait = -1.0
        elif timeout <= 0:
            wait = 0.0
        else:
            wait = math.ceil(timeout * 1e3) * 1e-3  # epoll counts milliseconds
        epoll, keys = cast(Any, self)._selector, cast(Any, self)._fd_to_key
        try:
            return cast(list[Any], epoll.poll(wait, len(keys) or 1))
        except InterruptedError:
            return []


class _Transport(_Base):  # type: ignore[misc] # asyncio has no stub of it
    """A stream socket's, which reads for a plain protocol, and writes what fits, in one call."""

    max_size = MOST_READ

    def _read_ready(self) -> None:
        protocol = self._protocol
        if self._conn_lost or isinstance(protocol, _Buffered):
            super()._read_ready()
            return
        try:
            data = self._sock.recv(MOST_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fatal_error(error, "Fatal read error on socket transport")
            return
        if not data:
            self._read_ready__on_eof()
            return
        try:
            protocol.data_received(data)
        except Exception as error:  # noqa: BLE001 - as asyncio does: the connection ends with it
            self._fatal_error(error, "Fatal error: protocol.data_received() call failed.")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._buffer or self._conn_lost or self._eof or self._empty_waiter is not None:
            super().write(data)
            return
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._fatal_error(error, "Fatal write error on socket transport")
            return
        if sent < len(data):
            self._loop._add_writer(self._sock_fd, self._write_ready)
            self._buffer.extend(memoryview(data)[sent:])
            self._maybe_pause_protocol()


class FairLoop(asyncio.SelectorEventLoop):
    """Serves each ready socket once a turn."""

    def __init__(self) -> None:
        self._readers: dict[int, Callable[[], None]] = {}  # of transports, by descriptor
        super().__init__(_Epoll())

    def _make_socket_transport(
        self,
        sock: Any,
        protocol: asyncio.BaseProtocol,
        waiter: Any = None,
        *,
        extra: Any = None,
        server: Any = None,
    ) -> asyncio.BaseTransport:
        return cast(asyncio.BaseTransport, _Transport(self, sock, protocol, waiter, extra, server))

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        handle = super()._add_reader(fd, callback, *args)  # type: ignore[misc]
        if isinstance(getattr(callback, "__self__", None), _Transport):
            self._readers[fd if isinstance(fd, int) else fd.fileno()] = callback
        return handle

    def _remove_reader(self, fd: Any) -> Any:
        self._readers.pop(fd if isinstance(fd, int) else fd.fileno(), None)
        return super()._remove_reader(fd)  # type: ignore[misc]

    def _process_events(self, event_list: list[tuple[int, int]]) -> None:
        readers, keys = self._readers, cast(Any, self)._selector._fd_to_key
        for fd, event in event_list:
            read = readers.get(fd)
            if read is not None and event & _NOT_WRITABLE:
                read()
                if event == select.EPOLLIN:
                    continue
            key = keys.get(fd)
            if key is not None:
                self._process(fd, event, *key.data, is_read=read is not None)

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
