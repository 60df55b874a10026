"""After the first visible event: the upstream's bytes go to the client as they come.

One object that the exchange pushes into and that the wheel looks at: no task, future, copy or
lock for an event. It ends exactly once, with what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llmgw.core.answers import keepalive
from llmgw.core.config import StreamsConfig
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.tail import Tail
from llmgw.core.types import Dialect
from llmgw.runtime.ports import Bypass, Downstream, Exchange
from llmgw.runtime.wheel import Wheel

LINGER = 1.0  # how long an upstream may hold its connection after the terminal event, seconds


class ClientStalled(Exception):
    """The client took nothing for `streams.client_stall`."""


Ended = Callable[[UpstreamError | ClientStalled | None], None]
"""Told what ended a stream; None: its framing, or its terminal event."""


class Splice:
    """Moves one stream's bytes and watches its silence, its client and its end."""

    __slots__ = (
        "_downstream",
        "_exchange",
        "_finished",
        "_keepalive",
        "_limits",
        "_moved",
        "_on_end",
        "_paused",
        "_since",
        "_tail",
        "_told_at",
        "_way",
        "_wheel",
    )

    def __init__(
        self,
        exchange: Exchange,
        downstream: Downstream,
        tail: Tail,
        *,
        dialect: Dialect,
        limits: StreamsConfig,
        wheel: Wheel,
    ) -> None:
        self._tail = tail  # these come first, to lie together: each event asks for them
        self._downstream = downstream
        self._finished = False  # the terminal event is out
        # Silence is counted from the tick after the last move: a limit may be kept a little
        # late, but never early, and a read costs no look at a clock.
        self._moved = True
        self._exchange = exchange
        self._limits = limits
        self._wheel = wheel
        self._keepalive = keepalive(dialect)
        self._on_end: Ended | None = None  # None: it has ended, or not begun
        self._paused = False
        self._way: Bypass | None = None  # for what need not come here
        self._since = self._told_at = wheel.now

    def start(self, released: bytes, on_end: Ended) -> None:
        """Send what was withheld and all that follows; `on_end` is called once, maybe in here.
        Whoever has started it calls `let_go`, at the latest then.
        """
        self._on_end = on_end
        self._wheel.add(self)
        self._downstream.on_pause(self._pause, self._resume)
        self.feed(released)
        if not self._finished:
            self._downstream.uncork()
        if self._downstream.paused:
            self._pause()
        self._exchange.splice_to(self)  # where the terminal event is out, for its end alone
        if self._on_end is not None:
            self._open_way()

    async def run(self, released: bytes) -> UpstreamError | None:
        """The same for whoever waits. Raises `ClientStalled`."""
        done: asyncio.Future[UpstreamError | ClientStalled | None] = (
            asyncio.get_running_loop().create_future()
        )
        self.start(released, lambda what: None if done.done() else done.set_result(what))
        try:
            what = await done
        finally:
            self.let_go()
        if isinstance(what, ClientStalled):
            raise what
        return what

    def let_go(self) -> None:
        """Whoever waited is served or gone; only a finished stream may linger on the wheel."""
        self._on_end = None
        if not self._finished:
            self._abort()

    # --- the sink's side

    def feed(self, data: bytes, chunk: bytes | None = None) -> None:
        """One read of the upstream: nothing here may cost more than it must."""
        if self._finished:
            return
        self._moved = True
        if self._tail.take(data):
            self._downstream.cork()  # the end goes out with the terminal event
            self._downstream.write(data, chunk)
            self._finish()
        else:
            self._downstream.write(data, chunk)

    def end(self, fault: UpstreamError | None) -> None:
        self._wheel.discard(self)
        self._tell(fault)

    # --- the wheel's side

    def tick(self, now: float) -> None:
        way = self._way
        if self._moved or (way is not None and way.moved):
            self._moved = False
            if way is not None:
                way.moved = False
            self._since = self._told_at = now
            return
        quiet = now - self._since
        if self._finished:
            if quiet >= LINGER:
                self._abort()
        elif self._paused:
            if quiet >= self._limits.client_stall:
                self._wheel.discard(self)
                self._tell(ClientStalled())
        elif quiet >= self._limits.idle_timeout:
            self._exchange.fail(UpstreamError(FaultKind.IDLE))
        elif now - self._told_at >= self._limits.keepalive and self._tail.is_between_events():
            self._told_at = now
            self._downstream.write(self._keepalive)

    # --- inside

    def _open_way(self) -> None:
        room = self._tail.room
        self._way = None if room is None else self._downstream.bypass(*room)
        if self._way is not None:
            self._exchange.go_past(self._way)

    def _finish(self) -> None:
        """The terminal event is out: the client need not wait for the upstream's socket."""
        self._finished = True
        if self._way is not None:
            self._exchange.go_past(None)
        self._tell(None)

    def _tell(self, what: UpstreamError | ClientStalled | None) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(what)

    def _abort(self) -> None:
        self._wheel.discard(self)
        self._exchange.abort()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = self._moved = True
            self._exchange.pause()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._moved = True  # the silence was the client's
            self._exchange.resume()
