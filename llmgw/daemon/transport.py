"""A stream socket between the event loop and its protocol.

It does what asyncio's own transport does, with less in between: a ready socket is one `recv` and
one call of the protocol, `write` is one `send` of as much as fits. The loop (`daemon/loop.py`)
calls it directly.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import futures
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from llmgw.daemon.bypass import Bypass, Outlet
from llmgw.daemon.direct import Bytes, carry, recv, send
from llmgw.daemon.ends import tell

HIGH_WATER = 64 * 1024  # bytes that wait before the protocol is told, as asyncio has it

_recv: Final = recv
_send: Final = send
_wake: Any = futures._set_result_unless_cancelled  # type: ignore[attr-defined]


class SocketTransport(Outlet):
    """An `asyncio.Transport`, but for its base class, whose slots would be in the way."""

    _start_tls_compatible: ClassVar[bool] = True  # asyncio's `start_tls` asks for it

    def __init__(
        self,
        loop: Any,
        sock: socket.socket,
        protocol: Any,
        extra: dict[str, Any] | None,
        server: Any,
    ) -> None:
        # What each event asks for comes first: it lies in one line of the processor's cache.
        super().__init__(sock.fileno())
        self._protocol = protocol
        self._is_plain = not isinstance(protocol, asyncio.BufferedProtocol)
        self._lost = False  # connection_lost is on its way, or has come
        self._closing = False
        self._eof = False  # nothing more may be written
        self._bypass: Bypass | None = None
        self._is_paused = self._protocol_paused = False
        self._loop = loop
        self._sock = sock
        self._server = server
        self._unsent = bytearray()
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4
        self._extra = extra or {}
        if server is not None:
            server._attach()
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # --- the loop's side

    def start(self, waiter: asyncio.Future[None] | None) -> None:
        """Tell the protocol, then read for it, and wake who waits for that."""
        self._tell(self._protocol.connection_made, self)
        if self.is_reading():
            self._loop.watch(self.fd, self)
        if waiter is not None:
            _wake(waiter, None)

    def read_ready(self) -> None:
        if self._lost:
            return
        if not self._is_plain:
            self._fill()
            return
        try:
            data = _recv(self.fd) if self._bypass is None else self._bypass.carry(self.fd)
        except OSError as error:
            self._force_close(error)
            return
        if not data:
            if data is not None:
                self._end_reading()
            return
        try:
            self._protocol.data_received(data)
        except Exception as error:  # noqa: BLE001 - as asyncio does: the connection ends with it
            self._fail(error, "data_received")

    def write_ready(self) -> None:
        if self._lost:
            return
        try:
            sent = _send(self.fd, self._unsent)
        except OSError as error:
            self._force_close(error)
            return
        del self._unsent[:sent]
        self._may_resume_protocol()  # which may write
        if self._unsent or self._lost:
            return
        self._loop.unwatch_writes(self.fd)
        self.writes_now = not self._eof
        if self._closing:
            self._lose_soon(None)
        elif self._eof:
            self._shut_down()

    # --- the protocol's side

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        told = tell(self._extra, name, self._sock)
        return default if told is None else told

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol
        self._is_plain = not isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._closing and not self._is_paused

    def pause_reading(self) -> None:
        if self.is_reading():
            self._is_paused = True
            self._loop.unwatch(self.fd)

    def resume_reading(self) -> None:
        if self._is_paused and not self._closing:
            self._is_paused = False
            self._loop.watch(self.fd, self)

    def write(self, data: Bytes) -> None:
        if not self.writes_now:
            self._write_behind(data)
            return
        try:
            sent = _send(self.fd, data)
        except OSError as error:
            self._force_close(error)
            return
        if sent < len(data):
            self.wait_to_write(memoryview(data)[sent:])

    def bypass(self, kept: bytearray, most: int) -> Bypass | None:
        """A way to here for what another socket gets (`direct.carry`); None: there is none."""
        return None if carry is None else Bypass(self, kept, most)

    def go_past(self, way: Bypass | None) -> None:
        """What is read from now on may go that way; the protocol gets what does not."""
        self._bypass = way

    def writelines(self, parts: Iterable[Bytes]) -> None:
        self.write(b"".join(parts))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._closing and not self._eof:
            self._eof, self.writes_now = True, False
            if not self._unsent:
                self._shut_down()

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Raises `ValueError` where not 0 <= low <= high."""
        high = high if high is not None else HIGH_WATER if low is None else 4 * low
        low = low if low is not None else high // 4
        if not 0 <= low <= high:
            raise ValueError(f"high ({high}) must be at least low ({low}), which is at least 0")
        self._high, self._low = high, low
        self._may_pause_protocol()

    def close(self) -> None:
        """What is unsent goes out first."""
        if not self._closing:
            self._closing = True
            self._loop.unwatch(self.fd)
            if not self._unsent:
                self._lose_soon(None)

    def abort(self) -> None:
        self._force_close(None)

    # --- inside

    def wait_to_write(self, rest: Bytes) -> None:
        self.writes_now = False
        self._unsent += rest
        self._loop.watch_writes(self.fd, self)
        self._may_pause_protocol()

    def _fill(self) -> None:
        try:
            buffer = self._protocol.get_buffer(-1)
        except Exception as error:  # noqa: BLE001 - as in `read_ready`
            self._fail(error, "get_buffer")
            return
        try:
            count: int = self._sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._force_close(error)
            return
        if not count:
            self._end_reading()
            return
        try:
            self._protocol.buffer_updated(count)
        except Exception as error:  # noqa: BLE001 - as in `read_ready`
            self._fail(error, "buffer_updated")

    def _end_reading(self) -> None:
        """The peer will send nothing more; a protocol may still want to."""
        try:
            stays_open = self._protocol.eof_received()
        except Exception as error:  # noqa: BLE001 - as in `read_ready`
            self._fail(error, "eof_received")
            return
        if stays_open:
            self._loop.unwatch(self.fd)
        else:
            self.close()

    def _write_behind(self, data: Bytes) -> None:
        if self._eof:
            raise RuntimeError("nothing can be written after write_eof")
        if not self._lost:
            self._unsent += data
            self._may_pause_protocol()

    def _shut_down(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:  # the peer has gone meanwhile
            self._force_close(error)

    def _may_pause_protocol(self) -> None:
        if len(self._unsent) > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._tell(self._protocol.pause_writing)

    def _may_resume_protocol(self) -> None:
        if self._protocol_paused and len(self._unsent) <= self._low:
            self._protocol_paused = False
            self._tell(self._protocol.resume_writing)

    def _tell(self, callback: Any, *args: Any) -> None:
        """Who is in the call is not who failed."""
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 - as asyncio does: it is told, and goes on
            self._report(error, callback.__name__)

    def _fail(self, error: Exception, what: str) -> None:
        self._report(error, what)
        self._force_close(error)

    def _report(self, error: Exception, what: str) -> None:
        message = f"Fatal error: protocol.{what}() call failed."
        parts = {"transport": self, "protocol": self._protocol}
        self._loop.call_exception_handler({"message": message, "exception": error, **parts})

    def _force_close(self, error: BaseException | None) -> None:
        """Asyncio's TLS calls it by this name."""
        if self._lost:
            return
        self._unsent.clear()
        if not self._closing:
            self._closing = True
            self._loop.unwatch(self.fd)
        self._lose_soon(error)

    def _lose_soon(self, error: BaseException | None) -> None:
        self._loop.unwatch_writes(self.fd)
        self._loop.call_soon(self._lose, error)
        self._lost, self.writes_now = True, False

    def _lose(self, error: BaseException | None) -> None:
        self._lost, self.writes_now = True, False
        try:
            self._protocol.connection_lost(error)
        finally:
            self._sock.close()
            self._protocol = None  # no circle is left to the garbage collector
            if self._server is not None:
                self._server._detach()
                self._server = None
