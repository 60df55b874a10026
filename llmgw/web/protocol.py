"""One client connection: aiohttp's request loop, made fit for a relay.

aiohttp parses; this class notices that a client left whatever is buffered, says refusals in our
words, and keeps every client byte out of the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.streams import StreamReader

from llmgw.observe import metrics
from llmgw.observe.logs import exception_fields
from llmgw.web.limits import (
    BRIEF_LINGER,
    HEAD_BYTES,
    OPTIONS,
    READ_AHEAD,
    READ_AHEAD_BYTES,
    WRITE_BUFFER,
)
from llmgw.web.riding import RidingLoop, Take
from llmgw.web.watches import EndWatch

log = logging.getLogger("llmgw.web")

MALFORMED = "UNKNOWN"  # the method that aiohttp gives to what it could not parse


class HeadTooLarge(Exception):
    """A request's head is longer than `HEAD_BYTES`."""


Refuse = Callable[["Connection", web.BaseRequest | None, BaseException | None], web.StreamResponse]
"""Answers a request that has no handler: its head was malformed, or its handler failed."""


class Connections(web.Server):
    """Makes a `Connection` for each client and knows them all."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Any],
        *,
        refuse: Refuse,
        take: Take | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            handler, request_factory=self._begin, handler_cancellation=True, **options
        )
        self.refuse = refuse
        self.take = take
        self.draining = False
        self.options = {**OPTIONS, **self._kwargs}

    @property
    def live(self) -> list[Connection]:
        return cast(list[Connection], self.connections)

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self.options)

    def _begin(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        request = self._make_request(message, payload, protocol, writer, task)
        cast(Connection, protocol).turn = request
        return request


class Connection(RidingLoop):
    """Kept small: what it adds to aiohttp's handler is named in the methods below."""

    __slots__ = (
        "_end_watch",
        "_has_ahead",
        "_has_parser",
        "_head_bytes",
        "_is_half_closed",
        "_server",
        "turn",
        "was_asked_for_body",
    )

    def __init__(
        self, server: Connections, *, loop: asyncio.AbstractEventLoop, **options: Any
    ) -> None:
        super().__init__(server, loop=loop, take=server.take, **options)
        self._has_parser = False  # of our own
        self._max_msg_queue_size = READ_AHEAD
        self._msg_queue_resume_size = READ_AHEAD // 2
        self._server = server
        self._has_ahead = False  # bytes came behind the request that is served
        self._head_bytes = 0
        self._is_half_closed = False
        self._end_watch = EndWatch(loop)
        self.turn: web.BaseRequest | None = None  # the request whose answer is due
        self.was_asked_for_body = False

    # --- the connection's life

    @property
    def is_idle(self) -> bool:
        """Between two requests, with no byte of the next one."""
        is_waiting = self._waiter is not None and not self._messages and not self._head_bytes
        return is_waiting and self._ride is None and self._gathered is None

    @property
    def is_ending(self) -> bool:
        return self._server.draining or self._close or self._force_close

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast(asyncio.WriteTransport, transport).set_write_buffer_limits(high=WRITE_BUFFER)
        metrics.OPEN_CONNECTIONS.inc()

    def connection_lost(self, exc: BaseException | None) -> None:
        metrics.OPEN_CONNECTIONS.dec()
        self._end_watch.end()
        super().connection_lost(exc)

    def ended_request(self, request: web.BaseRequest) -> None:
        """The handler is through: forget what was its own, and parse what waits."""
        self.turn = None
        self.on_pause(None, None)
        self.idle_since = self._loop.time()
        body = request.content
        if body.exception() is not None:
            body.feed_eof()  # nothing more will come of it: no lingering
        elif not body.is_eof():
            if "Expect" in request.headers and not self.was_asked_for_body:
                self._lingering_time = BRIEF_LINGER  # the body will hardly come
        else:
            self._was_parsed(body.total_bytes)
            if self._has_ahead and not self.is_ending:
                # The parser stops between messages once some are waiting, and goes on only when
                # it is fed: without this a pipelined request could lie in it for ever.
                self._parse(b"")
                self._has_ahead = bool(self._messages)
        self.was_asked_for_body = False

    def abort(self) -> None:
        """End it now, whatever it does; its handler is cancelled."""
        if self.transport is not None:
            self.transport.abort()

    # --- reading

    @property
    def is_reading(self) -> bool:
        return not (self._reading_paused or self._buffer_paused)

    def _parse(self, data: bytes) -> None:
        waits = self._waiter is not None
        if not self._has_parser and self._parser is not None:  # most connections never need it
            self._has_parser = True
            self._parser = self._own_parser()
        super()._parse(data)
        if self.turn is not None or len(self._messages) > 1:
            self._has_ahead = True
        if self._messages:
            self._head_bytes = 0
            if not isinstance(self._messages[-1][0], RawRequestMessage):
                self._break_bodies()
        elif waits and not self._close:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse_head()

    def _own_parser(self) -> HttpRequestParser:
        """In place of aiohttp's, which knows no limit of what waits."""
        options = self._server.options
        return HttpRequestParser(
            self,
            self._loop,
            options["read_bufsize"],
            max_line_size=options["max_line_size"],
            max_field_size=options["max_field_size"],
            max_headers=options["max_headers"],
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=READ_AHEAD,
        )

    def _refuse_head(self) -> None:
        """What is still on its way is read on for a moment, and dropped: a connection closed with
        unread bytes resets the answer (RFC 9112, section 9.6)."""
        self._server.refuse(self, None, HeadTooLarge())
        self._close = True  # nothing is parsed any more
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()
        self._loop.call_later(BRIEF_LINGER, self.force_close)

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio lets it answer
        """A client that has shut its sending side has left (the transport then closes), unless
        it did so inside a body or behind a malformed head: those are told what is wrong. What
        came behind a whole request makes no difference to the call that runs for it."""
        if self._ride is not None:
            self.abort()
            return False
        if self.turn is None and not self._messages:
            return False
        if not self._has_whole_turn() and (self._break_bodies() or self._has_malformed()):
            self._is_half_closed = True
            self.close()
            return True
        self.abort()
        return False

    def _has_whole_turn(self) -> bool:
        turn = self.turn
        return turn is not None and turn.method != MALFORMED and turn.content.is_eof()

    def _has_malformed(self) -> bool:
        if self.turn is not None and self.turn.method == MALFORMED:
            return True
        return any(not isinstance(message, RawRequestMessage) for message, _ in self._messages)

    def _break_bodies(self) -> bool:
        """End the bodies that can't come whole any more."""
        bodies = [body for _, body in self._messages]
        if self.turn is not None:
            bodies.append(self.turn.content)
        broken = [body for body in bodies if not body.is_eof()]
        for body in broken:
            body.set_exception(web.RequestPayloadError())
        return bool(broken)

    # --- noticing that a client leaves while nothing is read

    def pause_reading(self) -> None:
        """Not yet for a body that came ahead of its turn: an end of the connection behind it
        arrives only as long as there is room before it."""
        if self._upgraded:  # frames are no body
            super().pause_reading()
            return
        turn = self.turn
        ahead = sum(body.total_bytes for _, body in self._messages)
        if turn is None or not turn.content.is_eof() or ahead > READ_AHEAD_BYTES:
            super().pause_reading()

    def _pause_transport_reading(self) -> None:
        super()._pause_transport_reading()
        self._end_watch.begin(self.transport)

    def _resume_transport_reading(self) -> None:
        self._end_watch.end()
        if not self._is_half_closed:  # the loop would report the same end again and again
            super()._resume_transport_reading()

    # --- aiohttp's own errors

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Instead of an HTTP/1.0 text that quotes the client."""
        return self._server.refuse(self, request, exc)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Instead of a traceback that quotes the client."""
        error = kw.get("exc_info")
        fields = exception_fields(error) if isinstance(error, BaseException) else {}
        log.error("connection failed", extra=fields)
