"""One call on one connection: the request goes out, the head is awaited, the body comes in.

Before the first visible event a body is pulled with `read`, or with `take` by a listener that is
told of every change; from `splice_to` on, each read is one synchronous call of the sink at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.http import Bypass, ResponseHead, Sink
from llmgw.core.types import Body
from llmgw.upstream.connection import Connection
from llmgw.upstream.framing import Framing
from llmgw.upstream.head import Answer, HeadReader, read_at_once

MAX_UNREAD = 256 * 1024  # bytes that wait for `read` before the socket is left alone

OnSent = Callable[[Callable[[UpstreamError], None]], None]


class Exchange:
    """One open call. Ends once: whole, lost to the peer, failed from outside, or aborted.

    From its end on it touches the connection no more, which may serve another call.
    """

    # What most calls never change stands in the class: to set it for each would cost as much as
    # to read the head of its answer. What each event asks for comes first, to lie together.
    _framing: Framing | None = None  # None: the head is not whole
    _sink: Sink | None = None
    _listener: Callable[[], None] | None = None
    head: ResponseHead  # once `has_head`
    stale = False  # a reused connection was closed before any response byte
    ended = False
    fault: UpstreamError | None = None  # why it ended before its body did
    unread = 0  # bytes
    _reader: HeadReader | None = None  # of a head that is not read at once
    _keeps_alive = False
    _heard = False  # a response byte came
    _full = False  # the socket is left alone, for too much is unread
    _paused = False  # the same, for `pause` was called
    _waiter: asyncio.Future[None] | None = None
    _unsent: tuple[bytes, Body] | None = None  # head and body, while the connection is made

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection = connection
        self._method = method
        self._chunks: list[bytes] = []

    @property
    def is_between_chunks(self) -> bool:
        return self._framing is not None and self._framing.is_between_chunks

    @property
    def has_head(self) -> bool:
        return self._framing is not None

    async def ask(
        self, head: bytes, body: Body, *, header_timeout: float | None, on_sent: OnSent | None
    ) -> Exchange:
        """Send the request and wait for the head; whatever prevents it closes the connection."""
        try:
            self.send(head, body)
        except BaseException:
            self.abort()
            raise
        return await self.answered(header_timeout=header_timeout, on_sent=on_sent)

    async def answered(self, *, header_timeout: float | None, on_sent: OnSent | None) -> Exchange:
        """Wait for the head of what was sent; whatever prevents it closes the connection."""
        timer: asyncio.TimerHandle | None = None
        try:
            if on_sent is not None:
                on_sent(self.fail)
            if header_timeout is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(header_timeout, self._time_out)
            while self._framing is None:
                if self.fault is not None:
                    raise self.fault
                await self._wait()
        except BaseException:
            self.abort()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return self

    async def read(self) -> bytes:
        """The next body bytes; b"" at the end. May be cancelled, and called again, without loss.

        What came before a cut is given first; then `UpstreamError` is raised.
        """
        while not self._chunks:
            if self.fault is not None:
                raise self.fault
            if self.ended:
                return b""
            await self._wait()
        return self.take()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Who is told, once for each read of the socket, that something came or that it ended."""
        self._listener = listener

    def splice_to(self, sink: Sink) -> None:
        """Push what is buffered and all that follows into `sink`; it may end in here already."""
        ended = self.ended
        data = self.take()
        self._sink = sink
        if data:
            sink.feed(data)
        if ended:
            sink.end(self.fault)

    def go_past(self, way: Bypass | None) -> None:
        if not self.ended:
            self._connection.go_past(way)

    def pause(self) -> None:
        if not self.ended:
            self._paused = True
            self._connection.pause()

    def resume(self) -> None:
        self._paused = False
        if not self.ended and not self._full:
            self._connection.resume()

    def fail(self, fault: UpstreamError) -> None:
        """End the call from outside; what was not read yet is dropped."""
        if not self.ended:
            self._chunks.clear()
            self._connection.drop()
            self._end(fault)
            self._tell()

    def abort(self) -> None:
        """Close the connection at once, unless the body has ended. Nobody hears more of it."""
        self._sink = self._listener = None
        if not self.ended:
            self.fail(UpstreamError(FaultKind.CUT, "aborted"))

    def receive(self, data: bytes) -> None:
        framing = self._framing
        if framing is None:
            self._heard = True
            try:
                answer, data = self._read_head(data)
            except UpstreamError as fault:
                self.fail(fault)
                return
            if answer is None:
                return
            framing = self._begin_body(answer)
            if len(data) == answer.head.length:
                self._come_whole(data)
                return
        if framing.done:
            framing.surplus = bool(data)
        elif data and (body := framing.feed(data)):
            if self._sink is None:
                self._deliver(body)
            elif framing.was_chunk:
                self._sink.feed(body, data)
            else:
                self._sink.feed(body)
        if framing.done:
            self._finish(framing)
        elif framing.flaw:
            self._break(framing)
        self._tell()

    def _come_whole(self, body: bytes) -> None:
        """Head and body in one read, as most short answers come."""
        if body:
            self._chunks.append(body)
            self.unread = len(body)
        self._connection.vacate(in_step=self._keeps_alive)
        self.ended = True
        self._wake()
        self._tell()

    def lose(self, error: Exception | None) -> None:
        framing = self._framing
        if framing is not None and framing.until_eof and error is None:
            self._end(None)
            self._tell()
            return
        # A peer that TCP gave up on (ETIMEDOUT) did not close an idle connection: no repeat.
        timed_out = isinstance(error, TimeoutError)
        self.stale = self._connection.used and not self._heard and not timed_out
        kind = FaultKind.CUT if self._heard else FaultKind.LOST
        self._end(UpstreamError(kind, "closed" if error is None else "reset"))
        self._tell()

    def send(self, head: bytes, body: Body) -> None:
        connection = self._connection
        if connection.gone:  # closed, or out of step, before it could be asked
            self.lose(None)
            return
        connection.occupy(self)
        if connection.dial is not None:
            self._unsent = head, body
            return
        connection.send(head, body)

    def reached(self) -> None:
        """What could not be sent before the connection was made goes out."""
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            self.send(*unsent)

    async def _wait(self) -> None:
        """Until something came or the call has ended."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _time_out(self) -> None:
        if self._framing is None:
            self.fail(UpstreamError(FaultKind.TIMEOUT, "no response head"))

    def _read_head(self, data: bytes) -> tuple[Answer | None, bytes]:
        """Raises `UpstreamError` (INVALID)."""
        if self._reader is None:
            answer, rest = read_at_once(data, bodiless=self._method == "HEAD")
            if answer is not None:
                return answer, rest
            self._reader = HeadReader(self._method)
        rest = self._reader.feed(data)
        return self._reader.answer, rest

    def _begin_body(self, answer: Answer) -> Framing:
        self.head, self._framing, self._keeps_alive = answer
        self._reader = None
        self._wake()
        return answer.framing

    def _tell(self) -> None:
        if self._listener is not None:
            self._listener()

    def _deliver(self, body: bytes) -> None:
        self._chunks.append(body)
        self.unread += len(body)
        if self.unread > MAX_UNREAD and not self._full:
            self._full = True
            self._connection.pause()
        self._wake()

    def peek(self) -> bytes:
        """What has come so far; it stays."""
        if len(self._chunks) > 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def take(self) -> bytes:
        """What has come so far, maybe nothing."""
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self.unread = 0
        if self._full:
            self._full = False
            if not self.ended and not self._paused:
                self._connection.resume()
        return data

    def _finish(self, framing: Framing) -> None:
        if self.ended:  # the sink has just aborted
            return
        if self._full or self._paused:
            self._connection.resume()  # an idle connection must hear its end
        self._connection.vacate(in_step=self._keeps_alive and not framing.surplus)
        self._end(None)

    def _break(self, framing: Framing) -> None:
        if not self.ended:
            self._connection.drop()
            self._end(UpstreamError(FaultKind.INVALID, framing.flaw))

    def _end(self, fault: UpstreamError | None) -> None:
        self.ended = True
        self.fault = fault
        sink, self._sink = self._sink, None  # it holds this exchange: no circle may be left
        if sink is not None:
            sink.end(fault)
        else:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
