"""The reading half of a websocket, for both ends: aiohttp parses, and control frames are taken
when they arrive, whatever its reader does. So an idle websocket needs no task of its own."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from aiohttp._websocket.reader import WebSocketDataQueue
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import WebSocketError, WebSocketReader, WSMsgType
from aiohttp.streams import EofStream

from llmgw.core.frames import CloseCode, Closed, MaskCheck, Message, is_close_code, is_text

LIMIT = 64 * 1024  # messages that wait, beyond the first, before the socket is left alone


class Owner(Protocol):
    """Who holds the connection."""

    def on_ping(self, payload: bytes) -> None: ...

    def on_end(self, closed: Closed) -> None:
        """The peer closed, or broke the protocol in a way that the code names."""

    def on_lost(self) -> None:
        """The connection is gone."""


class Inbox(WebSocketDataQueue):
    """Whole messages in order; `ended` once there will be no more."""

    def __init__(self, protocol: BaseProtocol, owner: Owner, loop: asyncio.AbstractEventLoop):
        super().__init__(protocol, LIMIT, loop=loop)
        self._owner: Owner | None = owner
        self._is_shut = False  # by us: what still comes is not for its reader
        self._is_through = False  # behind the peer's close frame nothing counts
        self.ended: Closed | None = None

    async def receive(self) -> Message | Closed:
        """The next message; when all were read nothing but the end."""
        if self._is_shut:
            await self.drop()  # which lets the peer's close frame come in
        try:
            found = await self.read()
        except EofStream:
            return self.ended or Closed(CloseCode.ABNORMAL)
        return Message(found.data, is_text=found.type is WSMsgType.TEXT)

    async def drop(self) -> None:
        """Forget what has come and was not read; never waits."""
        while self._buffer:
            await self.read()

    def end(self, closed: Closed) -> None:
        """Wake whoever reads: nothing more will be read, not even what came already."""
        self._is_shut = True
        self._end(closed)

    # --- the parser's side

    def feed_data(self, data: Any, size: int) -> None:
        if self._is_through:
            return
        match data.type:
            case WSMsgType.PING:
                if self._owner is not None:
                    self._owner.on_ping(bytes(data.data))
            case WSMsgType.PONG:
                pass
            case WSMsgType.CLOSE:
                self._take_close(data.data or None, data.extra or "")
            case _ if self.ended is not None:
                pass
            case WSMsgType.TEXT if not is_text(data.data):
                self.fail(CloseCode.INVALID_TEXT)
            case _:
                super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *_: BaseException) -> None:
        self.fail(exc.code if isinstance(exc, WebSocketError) else CloseCode.INTERNAL_ERROR)

    def fail(self, code: int) -> None:
        """The peer broke the protocol: it is not listened to any more."""
        if not self._is_through:
            self._finish(Closed(code, broken=True))

    def feed_eof(self) -> None:
        self._end(Closed(CloseCode.ABNORMAL))
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.on_lost()

    def _take_close(self, code: int | None, reason: str) -> None:
        if code is not None and not is_close_code(code):
            self.fail(CloseCode.PROTOCOL_ERROR)
            return
        self._finish(Closed(CloseCode.NONE_GIVEN if code is None else code, reason))

    def _finish(self, closed: Closed) -> None:
        self._is_through = True
        self._end(closed)
        if self._owner is not None:
            self._owner.on_end(closed)

    def _end(self, closed: Closed) -> None:
        if self.ended is None:
            self.ended = closed
            super().feed_eof()


def build_reader(inbox: Inbox, max_bytes: int) -> WebSocketReader:
    """aiohttp refuses a message as long as its limit. Text stays bytes: it is passed on."""
    return WebSocketReader(inbox, max_bytes + 1, compress=False, decode_text=False)


class MaskedReader:
    """The parser of what a client sends: a frame that is not masked breaks the protocol."""

    __slots__ = ("_check", "_inbox", "_reader")

    def __init__(self, inbox: Inbox, max_bytes: int) -> None:
        self._inbox = inbox
        self._reader = build_reader(inbox, max_bytes)
        self._check = MaskCheck()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._check.passes(data):
            return self._reader.feed_data(data)
        self._inbox.fail(CloseCode.PROTOCOL_ERROR)
        return True, b""

    def feed_eof(self) -> None:
        self._inbox.feed_eof()
