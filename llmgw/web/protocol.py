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
from aiohttp.http import HttpRequestParser, RawRequestMessage

from llmgw.observe import metrics
from llmgw.observe.logs import exception_fields
from llmgw.web.backlog import has_left
from llmgw.web.limits import (
    FLUSH_WITHIN,
    HEAD_BYTES,
    LOOK_EVERY,
    OPTIONS,
    READ_AHEAD,
    WRITE_BUFFER,
)

log = logging.getLogger("llmgw.web")


class HeadTooLarge(Exception):
    """A request's head is longer than `HEAD_BYTES`."""


Refuse = Callable[["Connection", web.BaseRequest | None, BaseException | None], web.StreamResponse]
"""Answers a request that has no handler: its head was malformed, or its handler failed."""


class Connections(web.Server):
    """Makes a `Connection` for each client and knows them all."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Any], *, refuse: Refuse, **options: Any
    ) -> None:
        super().__init__(handler, handler_cancellation=True, **options)
        self.refuse = refuse
        self.draining = False

    @property
    def live(self) -> list[Connection]:
        return cast(list[Connection], self.connections)

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **{**OPTIONS, **self._kwargs})


class Connection(web.RequestHandler):
    """Kept small: what it adds to aiohttp's handler is named in the methods below."""

    __slots__ = (
        "_drained",
        "_flush_check",
        "_head_bytes",
        "_is_half_closed",
        "_look",
        "_on_pause",
        "_on_resume",
        "_server",
        "_unsent",
        "idle_since",
    )

    def __init__(
        self, server: Connections, *, loop: asyncio.AbstractEventLoop, **options: Any
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._parser = HttpRequestParser(
            self,
            loop,
            options["read_bufsize"],
            max_line_size=options["max_line_size"],
            max_field_size=options["max_field_size"],
            max_headers=options["max_headers"],
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=READ_AHEAD,
        )
        self._max_msg_queue_size = READ_AHEAD
        self._msg_queue_resume_size = READ_AHEAD // 2
        self._server = server
        self._head_bytes = 0
        self._is_half_closed = False
        self._unsent = 0
        self._on_pause: Callable[[], None] | None = None
        self._on_resume: Callable[[], None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        self._flush_check: asyncio.TimerHandle | None = None
        self.idle_since = loop.time()

    # --- the connection's life

    @property
    def is_idle(self) -> bool:
        """Between two requests, with no byte of the next one."""
        return self._waiter is not None and not self._messages and not self._head_bytes

    @property
    def is_ending(self) -> bool:
        return self._server.draining or self._close or self._force_close

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast(asyncio.WriteTransport, transport).set_write_buffer_limits(high=WRITE_BUFFER)
        metrics.OPEN_CONNECTIONS.inc()

    def connection_lost(self, exc: BaseException | None) -> None:
        metrics.OPEN_CONNECTIONS.dec()
        for timer in (self._look, self._flush_check):
            if timer is not None:
                timer.cancel()
        self._on_pause = self._on_resume = None
        super().connection_lost(exc)

    async def start(self) -> None:
        transport = self.transport
        try:
            await super().start()
        finally:
            self._watch_flush(transport)

    def force_close(self) -> None:
        transport = self.transport
        super().force_close()
        self._watch_flush(transport)

    def ended_request(self, request: web.BaseRequest) -> None:
        """The handler is through: forget what was its own, and parse what waits."""
        self.on_pause(None, None)
        self.idle_since = self._loop.time()
        body = request.content
        if body.exception() is not None:
            body.feed_eof()  # nothing more will come of it: no lingering
        elif body.is_eof() and not self.is_ending:
            # The parser stops between messages once some are waiting, and goes on only when it
            # is fed: without this a pipelined request could lie in it for ever.
            self.data_received(b"")

    def close_without_lingering(self) -> None:
        """Nothing more is coming from a client that was not told to send its body."""
        self._lingering_time = 0.0

    def abort(self) -> None:
        """End it now, whatever it does; its handler is cancelled."""
        if self.transport is not None:
            self.transport.abort()

    # --- reading

    def data_received(self, data: bytes) -> None:
        waits = self._waiter is not None
        super().data_received(data)
        if self._messages:
            self._head_bytes = 0
            if not isinstance(self._messages[-1][0], RawRequestMessage):
                self._break_bodies()
        elif waits:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse_head()

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio lets it answer
        """A client that has shut its sending side has left (the transport then closes), unless
        it did so inside a body or behind a malformed head: those are told what is wrong."""
        waiting = [message for message, _ in self._messages]
        if self._current_request is None and not waiting:
            return False
        if self._break_bodies() or not all(isinstance(one, RawRequestMessage) for one in waiting):
            self._is_half_closed = True
            self.close()
            return True
        if self.transport is not None:
            self.transport.abort()
        return False

    def _break_bodies(self) -> bool:
        """End the bodies that can't come whole any more."""
        bodies = [body for _, body in self._messages]
        if self._current_request is not None:
            bodies.append(self._current_request.content)
        broken = [body for body in bodies if not body.is_eof()]
        for body in broken:
            body.set_exception(web.RequestPayloadError())
        return bool(broken)

    def _refuse_head(self) -> None:
        self._server.refuse(self, None, HeadTooLarge())
        self.force_close()

    # --- noticing that a client leaves while nothing is read

    def _pause_transport_reading(self) -> None:
        super()._pause_transport_reading()
        if self._look is None:
            self._look = self._loop.call_later(LOOK_EVERY, self._look_for_end)

    def _resume_transport_reading(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if not self._is_half_closed:  # the loop would report the same end again and again
            super()._resume_transport_reading()

    def _look_for_end(self) -> None:
        self._look = None
        if self.transport is None:
            return
        if has_left(self.transport):
            self.transport.abort()
        else:
            self._look = self._loop.call_later(LOOK_EVERY, self._look_for_end)

    # --- writing

    def write(self, data: bytes) -> None:
        """Does nothing for a client that has left: its handler is being cancelled."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def on_pause(
        self, pause: Callable[[], None] | None, resume: Callable[[], None] | None
    ) -> None:
        self._on_pause, self._on_resume = pause, resume

    async def drained(self) -> None:
        while self.writing_paused:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._on_pause is not None:
            self._on_pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self._on_resume is not None:
            self._on_resume()

    def _watch_flush(self, transport: asyncio.Transport | None) -> None:
        """A closed transport waits for its buffer, and a client may never take it."""
        if transport is None or self._flush_check is not None:
            return
        self._unsent = transport.get_write_buffer_size()
        if self._unsent:
            self._flush_check = self._loop.call_later(FLUSH_WITHIN, self._check_flush, transport)

    def _check_flush(self, transport: asyncio.Transport) -> None:
        self._flush_check = None
        if transport.get_write_buffer_size() >= self._unsent:
            transport.abort()
        else:
            self._watch_flush(transport)

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
