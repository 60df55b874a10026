"""One keep-alive connection to an upstream: bytes and endings go to the call that occupies it."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from llmgw.core.errors import UpstreamError
from llmgw.core.http import Bypass
from llmgw.core.types import Body
from llmgw.upstream.dial import Dial

LARGE = 64 * 1024  # bytes of a body that is not worth a copy


class Occupant(Protocol):
    """The call that a connection serves at the moment."""

    @property
    def is_between_chunks(self) -> bool:
        """Whether a chunk of the chunked coding comes next."""

    def receive(self, data: bytes) -> None:
        """Bytes of one read, never empty."""

    def reached(self) -> None:
        """The connection, which was being made, is there."""

    def fail(self, fault: UpstreamError, /) -> None:
        """It could not be made."""

    def lose(self, error: Exception | None) -> None:
        """The peer ended the connection: cleanly (None) or not. Called at most once."""


class Keeper(Protocol):
    """Who owns a connection between its calls."""

    def take_back(self, connection: Connection) -> None:
        """The call ended and left the connection in step: it may serve another."""

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""


class Connection(asyncio.Protocol):
    """Serves one call at a time. What arrives while none does ends it."""

    __slots__ = (
        "_keeper",
        "_occupant",
        "_way",
        "dial",
        "gone",
        "idle_since",
        "transport",
        "used",
    )

    transport: asyncio.Transport  # once it is made

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._occupant: Occupant | None = None
        self._way: Bypass | None = None
        self.gone = False
        self.used = False  # a call was served: the peer may be about to close it
        self.idle_since = 0.0
        self.dial: Dial | None = None  # what makes it

    def occupy(self, occupant: Occupant) -> None:
        self._occupant = occupant

    def vacate(self, *, in_step: bool) -> None:
        """The call needs nothing more. Out of step, or with a request half sent: closed."""
        self._occupant = None
        self.go_past(None)
        if self.gone:
            return
        if not in_step or self.transport.get_write_buffer_size():
            self.drop()
            return
        self.used = True
        self._keeper.take_back(self)

    def drop(self) -> None:
        """Close at once and tell nobody but the keeper."""
        self._occupant = None
        self.go_past(None)
        if not self.gone:
            self.gone = True
            if self.dial is None:
                self.transport.abort()
            else:
                self.dial.cancel()
            self._keeper.forget(self)

    def cut(self) -> None:
        """Close at once, as if the peer had, but leave no reason to repeat the call."""
        self.used = False
        self._end(ConnectionAbortedError())

    def go_past(self, way: Bypass | None) -> None:
        """What comes from now on need not come here; None: it must."""
        if way is not self._way:
            self._way = way
            self._open_way()

    def send(self, head: bytes, body: Body) -> None:
        transport = self.transport
        if len(body) > LARGE:  # not joined, and what the socket does not take is not copied twice
            transport.write(head)
            transport.write(memoryview(body))
        elif body:
            transport.writelines((head, body))
        else:
            transport.write(head)

    def pause(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.dial = None
        if self._occupant is not None:
            self._occupant.reached()

    def unreachable(self, fault: UpstreamError) -> None:
        """Called in place of `connection_made`."""
        occupant = self._occupant
        self.drop()
        if occupant is not None:
            occupant.fail(fault)

    def data_received(self, data: bytes) -> None:
        occupant = self._occupant
        if occupant is None:
            self.drop()
        else:
            occupant.receive(data)
            if self._way is not None:
                self._open_way()

    def eof_received(self) -> None:
        """A half-closed upstream has nothing more to say; what is unsent is not waited for."""
        self._end(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)

    def _open_way(self) -> None:
        """It is open only between chunks: what looks like one may be the data of another."""
        go_past = getattr(self.transport, "go_past", None)  # the loop's own alone have it
        if go_past is not None:
            occupant = self._occupant
            is_open = occupant is not None and occupant.is_between_chunks
            go_past(self._way if is_open else None)

    def _end(self, error: Exception | None) -> None:
        occupant = self._occupant
        self.drop()
        if occupant is not None:
            occupant.lose(error)
