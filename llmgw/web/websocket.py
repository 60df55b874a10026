"""The client's end of a websocket, on the server's own connection.

Every frame goes out whole in one place, so that pongs, pings and messages never mix. What the
client sends waits in order; its pings and its close are taken at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from aiohttp.http import WebSocketReader

from llmgw.core.frames import (
    CloseCode,
    Closed,
    Message,
    Opcode,
    close_payload,
    control_frame,
    frame_head,
)
from llmgw.core.pulse import Beat, Pulse
from llmgw.upstream.inbox import Inbox, MaskedReader
from llmgw.web.incoming import Incoming
from llmgw.web.protocol import Connection
from llmgw.web.upgrade import Upgrade

CLOSE_WITHIN: Final = 5.0  # for the client's answer to a close frame
COPIED_BYTES: Final = 64 * 1024  # a longer message is not copied to stand behind its head


class ClientWebSocket:
    """Satisfies `llmgw.runtime.sockets.ClientSocket`. Make it with `accept`."""

    __slots__ = (
        "_connection",
        "_ended",
        "_inbox",
        "_is_closing",
        "_is_receiving",
        "_pulse",
        "_reader",
    )

    def __init__(self, connection: Connection, max_bytes: int) -> None:
        loop = asyncio.get_running_loop()
        self._connection = connection
        self._inbox = Inbox(connection, self, loop)
        self._reader = MaskedReader(self._inbox, max_bytes)  # held here, and by nobody else
        self._pulse = Pulse(loop.time())
        self._is_closing = False
        self._is_receiving = False
        self._ended: asyncio.Future[None] = loop.create_future()
        parser = cast(WebSocketReader, self._reader)  # as far as it is asked
        connection.set_parser(parser, data_received_cb=self._pulse.hear)

    @property
    def paused(self) -> bool:
        return self._connection.writing_paused

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._connection.on_pause(pause, resume)

    async def drained(self) -> None:
        await self._connection.drained()

    def write(self, data: bytes, opcode: Opcode = Opcode.TEXT) -> None:
        if self._is_closing:
            return
        head = frame_head(opcode, len(data))
        if len(data) <= COPIED_BYTES:
            self._connection.write(head + data)
        else:
            self._connection.write(head)
            self._connection.write(data)

    async def send(self, message: Message) -> None:
        self.write(message.data, Opcode.TEXT if message.is_text else Opcode.BINARY)
        if self.paused:
            await self.drained()

    async def receive(self) -> Message | Closed:
        self._is_receiving = True
        try:
            return await self._inbox.receive()
        finally:
            self._is_receiving = False

    def close(self, code: int = CloseCode.OK, reason: str = "") -> None:
        if not self._is_closing:
            self._connection.write(control_frame(Opcode.CLOSE, close_payload(code, reason)))
            self._is_closing = True
        self._inbox.end(Closed(code, reason))

    async def finished(self) -> None:
        """Answer the client's close frame, or wait a moment for it to answer ours."""
        ended = self._inbox.ended
        self.close(CloseCode.OK if ended is None else ended.code)
        try:
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._ended
        except TimeoutError:
            self.abort()

    def beat(self, now: float) -> None:
        connection = self._connection
        match self._pulse.beat(now, may_end=connection.is_reading and not self.paused):
            case Beat.PING if not self._is_closing:
                connection.write(control_frame(Opcode.PING))
            case Beat.GONE:
                self.abort()
            case _:
                pass

    def abort(self) -> None:
        self._connection.abort()

    # --- the inbox's side

    def on_ping(self, payload: bytes) -> None:
        if not self._is_closing and self._pulse.answers(is_stuck=self.paused):
            self._connection.write(control_frame(Opcode.PONG, payload))

    def on_end(self, closed: Closed) -> None:
        """A handler that receives ends by itself, and answers then; any other ends with the
        connection. Whoever broke the protocol has a moment to read why."""
        if self._is_receiving and not closed.broken:
            self._ended.set_result(None)
            return
        if not self._is_closing:
            self._connection.write(control_frame(Opcode.CLOSE, close_payload(closed.code)))
            self._is_closing = True
        if closed.broken:
            self._inbox.end(closed)  # what came before is not answered either
            asyncio.get_running_loop().call_later(CLOSE_WITHIN, self._connection.force_close)
            return
        self.on_lost()
        self._connection.force_close()

    def on_lost(self) -> None:
        self._is_closing = True
        if not self._ended.done():
            self._ended.set_result(None)


def accept(
    incoming: Incoming, upgrade: Upgrade, *, protocol: str | None, max_bytes: int
) -> ClientWebSocket:
    """Answer 101; from here on the connection carries frames."""
    incoming.downstream.switch(upgrade.headers(protocol))
    connection = cast(Connection, incoming.request.protocol)
    return ClientWebSocket(connection, max_bytes)
