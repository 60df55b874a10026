"""One keep-alive connection for small questions: a GET goes out, its bounded answer comes in.

A question costs one write, one future and no task of its own.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.reply import Reply, ReplyReader

Origin = tuple[str, str, int]  # scheme, host, port


class Keeper(Protocol):
    """Who owns a connection between its questions."""

    def take_back(self, inquiry: Inquiry) -> None:
        """It may be asked again."""

    def forget(self, inquiry: Inquiry) -> None:
        """It is gone."""


class Inquiry(asyncio.Protocol):
    """Asks one question at a time. What arrives unasked ends the connection."""

    __slots__ = (
        "_is_used",
        "_keeper",
        "_loop",
        "_reader",
        "_transport",
        "_waiter",
        "idle_since",
        "is_gone",
        "is_stale",
        "origin",
    )

    _transport: asyncio.Transport

    def __init__(self, keeper: Keeper, origin: Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.is_gone = False
        self.is_stale = False  # used before, and closed before any byte of the last answer
        self._is_used = False  # a question was answered: the peer may be about to close
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._reader = ReplyReader()
        self._waiter: asyncio.Future[Reply] | None = None

    def ask(self, request: bytes, *, max_bytes: int) -> asyncio.Future[Reply]:
        """Send a whole GET. The future gets its answer, or an `UpstreamError`."""
        self._reader.expect(max_bytes)
        waiter = self._waiter = self._loop.create_future()
        if self.is_gone:
            self._lose()
        else:
            self._transport.write(request)
        return waiter

    def give_up(self) -> None:
        """There was no whole answer in time."""
        self._fail(FaultKind.TIMEOUT, "no whole answer in time")

    def drop(self) -> None:
        """Close at once, and answer nothing."""
        if not self.is_gone:
            self.is_gone = True
            self._reader.close()
            self._transport.abort()
            self._keeper.forget(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if self._waiter is None:
            self.drop()
            return
        reader.feed(data)
        if reader.is_flawed:
            self._fail(FaultKind.INVALID, "answer that is not HTTP")
        elif reader.reply is not None:
            self._answer(reader.reply)

    def eof_received(self) -> None:
        """A half-closed peer has nothing more to say."""
        self._reader.end()
        self._lose()

    def connection_lost(self, error: Exception | None) -> None:
        self._lose()

    def _lose(self) -> None:
        reader = self._reader
        if self._waiter is None:
            self.drop()
        elif reader.reply is not None:
            self._answer(reader.reply)
        elif reader.has_head:
            self._fail(FaultKind.CUT, "answer cut short")
        else:
            self.is_stale = self._is_used and not reader.has_begun
            self._fail(FaultKind.LOST, "closed without an answer")

    def _answer(self, reply: Reply) -> None:
        waiter, self._waiter = self._waiter, None
        if self._reader.keeps_alive and not self.is_gone:
            self._is_used = True
            self._keeper.take_back(self)
        else:
            self.drop()
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def _fail(self, kind: FaultKind, detail: str) -> None:
        waiter, self._waiter = self._waiter, None
        self.drop()
        if waiter is not None and not waiter.done():  # else whoever asked was cancelled
            waiter.set_exception(UpstreamError(kind, detail))
