"""A websocket to an upstream: connected and shaken hands like any call, then whole messages."""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64encode
from typing import cast

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import WebSocketWriter

from llmgw.core.config import Upstream
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.frames import CloseCode, Closed, Message, Opcode, close_payload, control_frame
from llmgw.core.http import Rejection
from llmgw.core.pulse import Beat, Pulse
from llmgw.core.types import Headers
from llmgw.upstream.address import connect
from llmgw.upstream.handshake import HandshakeReader, is_accepted, render_upgrade
from llmgw.upstream.inbox import Inbox, build_reader

WRITE_BUFFER = 256 * 1024
CLOSE_WITHIN = 2.0  # an upstream may say why it closes, too
REFUSAL_WITHIN = 5.0  # for the body of a refusal, whose status says most of it


class Sockets:
    """Opens websockets to upstreams, and ends those that are left at stop."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._open: set[UpstreamSocket] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def open(
        self,
        upstream: Upstream,
        *,
        target: str,
        headers: Headers,
        protocols: tuple[str, ...] = (),
        max_bytes: int,
        connect_timeout: float,
        handshake_timeout: float,
    ) -> UpstreamSocket | Rejection:
        """Raises `UpstreamError`, and ValueError for a request that can't be written safely."""
        key = b64encode(os.urandom(16)).decode()
        head = render_upgrade(upstream.url, target, headers, key=key, protocols=protocols)
        socket = await connect(
            upstream.url,
            lambda: UpstreamSocket(max_bytes, self._open),
            within=connect_timeout,
            tls=self._tls,
        )
        try:
            async with asyncio.timeout(handshake_timeout):
                answer = await socket.shake_hands(head)
        except TimeoutError:
            socket.abort()
            raise UpstreamError(FaultKind.TIMEOUT, "handshake") from None
        except BaseException:
            socket.abort()
            raise
        if answer.head is None:
            raise UpstreamError(FaultKind.LOST)
        if answer.head.status != 101:
            socket.abort()
            return Rejection(answer.head, answer.body)
        if not is_accepted(answer.head, key=key, offered=protocols):
            socket.abort()
            raise UpstreamError(FaultKind.INVALID, "handshake")
        socket.protocol = answer.head.header("sec-websocket-protocol")
        return socket

    def close(self) -> None:
        for socket in tuple(self._open):
            socket.abort()


class UpstreamSocket(BaseProtocol):
    """One websocket to an upstream. Nothing raises for a peer that is gone: `receive` tells."""

    __slots__ = (
        "_answer",
        "_inbox",
        "_is_closing",
        "_members",
        "_pulse",
        "_reader",
        "_shaken",
        "_writer",
        "protocol",
    )

    def __init__(self, max_bytes: int, members: set[UpstreamSocket]) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._upgraded = True  # there is no HTTP parser that reading would have to stop
        self._members = members
        self._inbox = Inbox(self, self, loop)
        self._reader = build_reader(self._inbox, max_bytes)
        self._writer: WebSocketWriter | None = None
        self._answer = HandshakeReader()
        self._shaken: asyncio.Future[None] = loop.create_future()
        self._pulse = Pulse(loop.time())
        self._is_closing = False
        self.protocol: str | None = None

    @property
    def ended(self) -> Closed | None:
        return self._inbox.ended

    async def shake_hands(self, head: bytes) -> HandshakeReader:
        if self.transport is not None:
            self.transport.write(head)
        await self._shaken
        return self._answer

    async def send(self, message: Message) -> None:
        """Returns once the upstream has room for more."""
        if self._writer is None or self._is_closing or self.ended is not None:
            return
        opcode = Opcode.TEXT if message.is_text else Opcode.BINARY
        try:
            await self._writer.send_frame(message.data, opcode)
        except ConnectionError:
            self._inbox.end(Closed(CloseCode.ABNORMAL))

    async def receive(self) -> Message | Closed:
        return await self._inbox.receive()

    async def drop(self) -> None:
        """Forget what came while nobody read."""
        await self._inbox.drop()

    def beat(self, now: float) -> None:
        """Now and then: see to it that the peer is there, and that it sees that we are."""
        may_end = not (self._reading_paused or self._paused)
        match self._pulse.beat(now, may_end=may_end):
            case Beat.PING:
                self._control(Opcode.PING)
            case Beat.GONE:
                self.abort()
            case Beat.NOTHING:
                pass

    def close(self, code: int = CloseCode.OK, reason: str = "") -> None:
        """Say so, and end soon."""
        if not self._is_closing and self.transport is not None:
            self._control(Opcode.CLOSE, close_payload(code, reason))
            self._is_closing = True
            self._loop.call_later(CLOSE_WITHIN, self.abort)
        self._inbox.end(Closed(code, reason))

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _control(self, opcode: Opcode, payload: bytes = b"") -> None:
        if self.transport is not None and not self._is_closing:
            self.transport.write(control_frame(opcode, payload, mask=os.urandom(4)))

    # --- the inbox's side

    def on_ping(self, payload: bytes) -> None:
        if self._pulse.answers(is_stuck=self._paused):
            self._control(Opcode.PONG, payload)

    def on_end(self, closed: Closed) -> None:
        self._control(Opcode.CLOSE, close_payload(closed.code))
        self._is_closing = True
        if self.transport is not None:
            self.transport.close()

    def on_lost(self) -> None:
        self._is_closing = True

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        wire = cast(asyncio.Transport, transport)
        wire.set_write_buffer_limits(high=WRITE_BUFFER)
        self._writer = WebSocketWriter(self, wire, use_mask=True)
        self._members.add(self)

    def data_received(self, data: bytes) -> None:
        self._pulse.hear()
        if self._shaken.done():
            self._reader.feed_data(data)
            return
        had_head = self._answer.head is not None
        try:
            frames = self._answer.feed(data)
        except UpstreamError as error:
            self._shaken.set_exception(error)
            return
        head = self._answer.head
        if self._answer.is_over or (head is not None and head.status == 101):
            self._shaken.set_result(None)
        elif head is not None and not had_head:
            self._loop.call_later(REFUSAL_WITHIN, self._answered)
        if frames:
            self._reader.feed_data(frames)

    def eof_received(self) -> None:
        """A half-closed upstream has nothing more to say."""

    def connection_lost(self, exc: BaseException | None) -> None:
        self._members.discard(self)
        self._answer.end()
        self._answered()
        self._inbox.feed_eof()
        super().connection_lost(None)

    def _answered(self) -> None:
        if not self._shaken.done():
            self._shaken.set_result(None)
