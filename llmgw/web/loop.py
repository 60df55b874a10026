"""The loop of one client connection: request after request, none in a task of its own.

aiohttp runs each handler in a new task, for its context variables; here nobody has any. The rest
of what it does between two requests is done here as well: the keep-alive timer, what is left of
a body that the handler did not want, and the end of the connection.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import cast

from aiohttp import web
from aiohttp.http import RawRequestMessage, StreamWriter
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import ERROR


class Handed(ABC):
    """A request that was begun without this task, and goes on in it."""

    @abstractmethod
    async def go_on(self) -> bool:
        """Whether the connection is kept."""


class RequestLoop(web.RequestHandler):
    """aiohttp's request handler with a leaner `start`."""

    __slots__ = ()

    async def start(self) -> None:
        """Called by aiohttp in the connection's one task, which it cancels with the connection."""
        try:
            while not self._force_close and await self._serve_next():
                self._wait_for_the_next()
        except asyncio.CancelledError:
            self.force_close()
            raise
        except ConnectionError:
            pass  # the client left in the middle of its answer
        except Exception as error:  # noqa: BLE001 - nobody waits for this task
            self.log_exception("connection failed", exc_info=error)
            self.force_close()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Called after each read of a body; mostly nothing was paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    async def _serve_next(self) -> bool:
        """Whether the connection goes on."""
        if not self._messages:
            await self._message()
        message, payload = self._messages.popleft()
        handed = cast("Handed | object", message)
        if isinstance(handed, Handed):
            return await handed.go_on() and not self._close
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        return await self._serve(message, payload)

    async def _message(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _serve(self, message: object, payload: StreamReader) -> bool:
        manager, factory, handler = self._manager, self._request_factory, self._request_handler
        if manager is None or factory is None or handler is None or self._task_handler is None:
            return False  # the connection is lost
        manager.requests_count += 1
        if not isinstance(message, RawRequestMessage):
            handler = self._make_error_handler(message)  # type: ignore[arg-type] # its own type
            message = ERROR
        request = factory(
            message, payload, self, StreamWriter(self, self._loop), self._task_handler
        )
        response, left = await self._handle_request(request, None, handler)
        request._task = None  # type: ignore[assignment] # as aiohttp does: no cycle
        if left:
            return False
        self._keepalive = bool(response.keep_alive)
        if not payload.is_eof():
            await self._linger(payload)
        return self._keepalive and not self._close

    async def _linger(self, payload: StreamReader) -> None:
        """Read on for a moment: a connection closed with unread bytes resets the answer."""
        try:
            async with asyncio.timeout(self._lingering_time):
                while not payload.is_eof() and not self._force_close:
                    await payload.readany()
        except TimeoutError:
            self.close()

    def hand_in(self, handed: Handed) -> None:
        """Wake the task, which is waiting for a request."""
        self._messages.append((handed, None))  # type: ignore[arg-type] # none that aiohttp made
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _wait_for_the_next(self) -> None:
        """One timer for the connection: it looks itself whether it came too early."""
        due = self._loop.time() + self._keepalive_timeout
        self._next_keepalive_close_time = due
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(due, self._process_keepalive)
