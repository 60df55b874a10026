"""Which bytes of an attempt may reach the client: none until output is visible, then all."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from llmgw.core import document
from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject, error_answer, find_error
from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import Event, EventCutter
from llmgw.core.types import Dialect


class ReleaseCause(StrEnum):
    VISIBLE = "visible"
    TERMINAL = "terminal"  # the answer ended without visible output: blank, but an answer
    OVERFLOW = "overflow"  # more was withheld than may be
    UNHELD = "unheld"  # nothing is ever withheld on this route


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing to send: another attempt may still take this one's place."""


class Release(NamedTuple):
    """Send `data`, which is all that has come so far; what follows passes unparsed."""

    data: bytes
    cause: ReleaseCause

    def __repr__(self) -> str:
        return f"Release(cause={self.cause!r})"


@dataclass(frozen=True, slots=True)
class Faulted:
    """The attempt failed before it showed anything: IN_BAND, or EMPTY.

    `error` is None where no error object was found. `body` is the upstream's own error as the
    JSON body of an error answer in the dialect; empty where there is no error object.
    """

    kind: FaultKind
    error: ErrorObject | None = None
    body: bytes = field(default=b"", repr=False)


HELD = Held()


class Relay:
    """Holds an attempt's events back until the first visible one. Used up by any answer but
    `Held`."""

    def __init__(self, dialect: Dialect, *, hold_bytes: int, max_event_bytes: int) -> None:
        self._dialect = dialect
        self._room = hold_bytes
        self._max_event_bytes = max_event_bytes
        self._cutter = EventCutter()
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> Held | Release | Faulted:
        """Body bytes of one read."""
        self._cutter.take(data)
        while (event := self._cutter.next()) is not None:
            verdict = self._judge(event)
            if isinstance(verdict, Faulted):
                return verdict
            if verdict is not None:
                return self._release(verdict)
        if self._cutter.pending_size > self._max_event_bytes:
            return self._release(ReleaseCause.OVERFLOW)
        return HELD

    def end(self) -> Release | Faulted:
        """The body ended. An event that only lacks its line ends counts, and gets them."""
        event = self._cutter.close()
        verdict = self._judge(event) if event else None
        if isinstance(verdict, Faulted):
            return verdict
        if verdict is None:
            return Faulted(FaultKind.EMPTY)
        return Release(b"".join(self._held), verdict)

    def _judge(self, event: Event) -> ReleaseCause | Faulted | None:
        if len(event.raw) > self._max_event_bytes:
            self._held.append(event.raw)
            return ReleaseCause.OVERFLOW
        sight = sight_of(event, self._dialect)
        if sight is Sight.FAULT:
            return _faulted(event, self._dialect)
        self._held.append(event.raw)
        if sight is Sight.HIDDEN:
            self._room -= len(event.raw)
            return ReleaseCause.OVERFLOW if self._room < 0 else None
        return ReleaseCause.VISIBLE if sight is Sight.VISIBLE else ReleaseCause.TERMINAL

    def _release(self, cause: ReleaseCause) -> Release:
        return Release(b"".join((*self._held, self._cutter.pending)), cause)


class OpenRelay:
    """The same for a route that is never retried (compact): every byte goes out as it comes."""

    def feed(self, data: bytes) -> Held | Release | Faulted:
        return Release(data, ReleaseCause.UNHELD)

    def end(self) -> Release | Faulted:
        return Faulted(FaultKind.EMPTY)


def _faulted(event: Event, dialect: Dialect) -> Faulted:
    answer = document.parse(event.data)
    error = find_error(answer)
    body = b"" if error is None else error_answer(answer, dialect)
    return Faulted(FaultKind.IN_BAND, error, body)
