"""The client's side of one request, written straight to the server's transport.

One `transport.write` for a whole answer, one for a head, one for each chunk. The server's own
response machinery sees a response that has been sent already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import HttpVersion11, web

from llmgw.core.http import Bypass
from llmgw.core.lines import header_lines
from llmgw.core.types import Headers
from llmgw.web.access import Ending
from llmgw.web.head import CHUNKED, CLOSE, KEEP, UPGRADE, date_line, status_line
from llmgw.web.protocol import Connection
from llmgw.web.sent import ENDED, KEPT, Sent

OK = 200
LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_LENGTH = frozenset({204, 304})  # their answers have no body (RFC 9110, 6.4.1)


class HttpDownstream:
    """Writes one answer; `own` are ready header lines that every answer to this request has.

    Without a `request` it refuses what was no request, and ends the connection.
    """

    # What a whole answer in one write does not change stands in the class; what each event of a
    # stream asks for comes first, to lie together.
    _sent = 0  # bytes of the body
    _transport: asyncio.Transport | None = None  # of an answer that goes out in parts
    _corked: bytes | None = None  # what waits to go out with what follows
    _chunked = False
    _ended = False
    _way: Bypass | None = None
    _head_only = False
    status = 0
    ending = Ending.WHOLE
    _keep = False
    _request: web.BaseRequest | None = None
    _speaks_1_1 = True

    def __init__(
        self, connection: Connection, request: web.BaseRequest | None, *, own: bytes = b""
    ) -> None:
        self._connection = connection
        self.own = own
        if request is not None:
            self._request = request
            self._speaks_1_1 = request.version >= HttpVersion11
            self._head_only = request.method == "HEAD"

    @property
    def committed(self) -> bool:
        return self.status != 0

    @property
    def bytes_sent(self) -> int:
        return self._sent if self._way is None else self._sent + self._way.passed

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def paused(self) -> bool:
        return self._connection.writing_paused

    @property
    def sent(self) -> Sent:
        """For the server loop, once the answer has ended."""
        return KEPT if self._keep else ENDED

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._connection.on_pause(pause, resume)

    async def drained(self) -> None:
        await self._connection.drained()

    def continue_reading(self) -> None:
        """Ask a client that waits for it to send its body (RFC 9110, 10.1.1)."""
        self._connection.was_asked_for_body = True
        self._connection.write(CONTINUE)

    def respond(self, status: int, headers: Headers | bytes, body: bytes) -> None:
        keep = self._may_keep()
        length = b"" if status in NO_LENGTH else b"content-length: %d\r\n" % len(body)
        head = self._head(status, headers, keep, length)
        if self._head_only or status in NO_LENGTH:
            body = b""
        self._begin(status, keep)
        self._ended = True
        self._sent = len(body)
        self._connection.write(head + body)

    def commit(self, status: int, headers: Headers | bytes) -> None:
        keep = self._may_keep() and self._speaks_1_1
        head = self._head(status, headers, keep, CHUNKED if self._speaks_1_1 else b"")
        self._begin(status, keep)
        self._chunked = self._speaks_1_1
        self._transport = self._connection.transport
        self._send(head)

    def switch(self, headers: Headers) -> None:
        """Answer 101: what follows on the connection is no HTTP, and the connection its last."""
        lines = (status_line(101), header_lines(headers), self.own, date_line(), UPGRADE)
        self._begin(101, keep=False)
        self._ended = True
        self._connection.write(b"".join((*lines, b"\r\n")))

    def write(self, data: bytes, chunk: bytes | None = None) -> None:
        if self._ended or self._head_only or not data:
            return
        self._sent += len(data)
        if self._chunked:
            data = chunk or b"%x\r\n%b\r\n" % (len(data), data)
        self._send(data)

    def bypass(self, kept: bytearray, most: int) -> Bypass | None:
        make = getattr(self._transport, "bypass", None)  # of the loop's own transports alone
        if make is None or not self._chunked or self._ended or self._head_only:
            return None
        self._way = make(kept, most)
        return self._way

    def cork(self) -> None:
        if self._corked is None:
            self._corked = b""

    def uncork(self) -> None:
        corked, self._corked = self._corked, None
        if corked:
            self._send(corked)

    def finish(self, *, close: bool = False) -> None:
        if self._ended:
            return
        self._ended = True
        self._keep = self._keep and not close
        if self._chunked and not self._head_only:
            self._send(LAST_CHUNK)
        self.uncork()

    def cut(self) -> None:
        """The connection ends when the handler returns, after what is buffered went out."""
        if self._ended:
            return
        self._ended = True
        self._keep = False
        self.ending = Ending.CUT
        self.uncork()

    def _send(self, data: bytes) -> None:
        """Does nothing for a client that has left: its handler is being cancelled."""
        if self._corked is not None:
            self._corked += data
        elif self._transport is not None:
            self._transport.write(data)

    def _begin(self, status: int, keep: bool) -> None:
        self.status = status
        self._keep = keep

    def _may_keep(self) -> bool:
        """A body that has not come whole would be taken for the next request."""
        if self._request is None or self._connection.is_ending:
            return False
        body = self._request.content
        return self._request.keep_alive and body.is_eof() and body.exception() is None

    def _head(self, status: int, headers: Headers | bytes, keep: bool, framing: bytes) -> bytes:
        if not keep:
            framing += CLOSE
        elif not self._speaks_1_1:
            framing += KEEP
        said = headers if isinstance(headers, bytes) else header_lines(headers)
        return b"".join((status_line(status), said, self.own, date_line(), framing, b"\r\n"))


class WholeDownstream(HttpDownstream):
    """Of an HTTP/1.1 request that was there as a whole before anything was done for it."""

    def __init__(self, connection: Connection, *, own: bytes) -> None:
        self._connection = connection
        self.own = own

    @property
    def keeps(self) -> bool:
        return self._keep

    def respond(self, status: int, headers: Headers | bytes, body: bytes) -> None:
        connection = self._connection
        if status != OK or not isinstance(headers, bytes) or connection.is_ending:
            super().respond(status, headers, body)
            return
        self.status = status
        self._sent = len(body)
        self._keep = self._ended = True
        connection.write(
            b"HTTP/1.1 200 OK\r\n%b%b%bcontent-length: %d\r\n\r\n%b"
            % (headers, self.own, date_line(), len(body), body)
        )

    def _may_keep(self) -> bool:
        return not self._connection.is_ending
