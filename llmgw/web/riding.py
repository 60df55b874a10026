"""The half of a client connection that serves requests without its task, where that will do."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from llmgw.core.fields import END
from llmgw.web.filling import Filling
from llmgw.web.limits import BODY_SILENCE, READ_AHEAD_BYTES
from llmgw.web.loop import Handed
from llmgw.web.writing import AnsweringLoop


class Ride(Handed):
    """A request that is served without the connection's task, and may go on in it."""

    @abstractmethod
    def leave(self) -> None:
        """The client has left."""


class Gathered(Protocol):
    """A request whose body is still coming in, kept from the parser."""

    head: bytes
    body: bytearray  # of its whole length
    at: int  # how much of that has come with the head

    def begin(self) -> Ride | None:
        """It is there as a whole; None: it has to be parsed."""


Take = Callable[[Any, bytes], Ride | Gathered | None]
"""Serves the request that begins with a connection's bytes; None: it has to be parsed."""


class RidingLoop(AnsweringLoop):
    """The task and aiohttp's parser sleep while a ride is on."""

    __slots__ = (
        "_ahead",
        "_fed",
        "_filling",
        "_gathered",
        "_has_begun",
        "_head_size",
        "_patience",
        "_ride",
        "_taker",
        "idle_since",
    )

    def __init__(
        self, server: Any, *, loop: asyncio.AbstractEventLoop, take: Take | None, **options: Any
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._taker = take
        self._has_begun = False
        self._ride: Ride | None = None
        self._ahead = b""  # what came behind its request
        self._gathered: Gathered | None = None
        self._filling: Filling | None = None  # of its body
        self._patience: asyncio.TimerHandle | None = None  # with what is gathered
        self._fed = 0  # bytes that the parser got since it surely held none
        self._head_size = 0  # of the first request in them
        self.idle_since = loop.time()

    def connection_lost(self, exc: BaseException | None) -> None:
        ride, self._ride = self._ride, None
        self._gathered = self._filling = None
        self._be_patient(None)
        super().connection_lost(exc)
        if ride is not None:
            ride.leave()

    def data_received(self, data: bytes) -> None:
        if self._ride is not None:
            self._come_ahead(data)
        elif self._fed or not self._is_waiting or not self._take(data):
            self._parse(data)

    async def start(self) -> None:
        self._has_begun = True
        await super().start()

    @property
    def _is_waiting(self) -> bool:
        """The task waits for a request; it may come before the task does."""
        return self._waiter is not None or not self._has_begun

    def hand_over(self, ride: Ride) -> None:
        """It has to wait for something: the task serves it from here on."""
        self._ride = ride
        self.hand_in(ride)

    def ride_over(self, *, keep: bool) -> None:
        """The answer is out. The task, which has slept through it, still waits for a request."""
        if not keep:
            self._ride = None
            self.force_close()
            return
        self._keepalive = True
        due = self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(due, self._process_keepalive)
        self.ride_ended()

    def ride_ended(self) -> None:
        """The same, told by the task that it went on in."""
        self._ride = self._on_pause = self._on_resume = None
        self.idle_since = self._loop.time()
        if self._buffer_paused:
            self._resume_reading_for_buffer()
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            self.data_received(ahead)

    def _take(self, data: bytes) -> bool:
        """Whether it is served so: nothing of an earlier request may be left."""
        if (
            self._taker is None
            or self._messages
            or self.writing_paused
            or self._close
            or self._force_close
            or self._upgraded
        ):
            return False
        taken = self._taker(self, data)
        if taken is None or isinstance(taken, Ride):
            self._ride = taken
            return taken is not None
        self._gather(taken)
        return True

    def filled(self) -> None:
        """A body that was waited for is there."""
        gathered = self._end_gathering()
        if gathered is None:
            return
        self._ride = gathered.begin()
        if self._ride is None:
            self._parse(gathered.head)
            self._parse(bytes(gathered.body))

    def emptied(self) -> None:
        """It takes long, or ends early: then what is said of other requests holds for it."""
        at = 0 if self._filling is None else self._filling.at
        gathered = self._end_gathering()
        if gathered is not None:
            self._parse(gathered.head)
            self._parse(bytes(gathered.body[:at]))

    def _gather(self, gathered: Gathered) -> None:
        """The loop reads the rest of its body to where it is to lie, and not a byte more."""
        if self.transport is None:
            return
        self._gathered = gathered
        self._filling = Filling(self, gathered.body, gathered.at)
        self.transport.set_protocol(self._filling)
        self._be_patient(BODY_SILENCE)

    def _end_gathering(self) -> Gathered | None:
        gathered, self._gathered = self._gathered, None
        self._filling = None
        self._be_patient(None)
        if gathered is not None and self.transport is not None:
            self.transport.set_protocol(self)
        return gathered

    def _be_patient(self, seconds: float | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None if seconds is None else self._loop.call_later(seconds, self.emptied)

    def _parse(self, data: bytes) -> None:
        if not self._fed:
            self._head_size = data.find(END) + len(END)
        self._fed += len(data)
        super().data_received(data)

    def _was_parsed(self, body_bytes: int) -> None:
        """A request ended: if it was all that the parser got, the next may be taken again."""
        if self._fed == self._head_size + body_bytes:
            self._fed = 0

    def _come_ahead(self, data: bytes) -> None:
        """Bytes of the next request."""
        self._ahead += data
        if len(self._ahead) > READ_AHEAD_BYTES and not self._buffer_paused:
            self._pause_reading_for_buffer()

    def _process_keepalive(self) -> None:
        if self._ride is not None or self._gathered is not None:
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        super()._process_keepalive()
