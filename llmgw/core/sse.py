"""Event streams cut into events, by the standard (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

import re
from typing import NamedTuple

from llmgw.core import document

BOM = document.BOM
DONE = b"[DONE]"

# A line ends with LF, CR or CR LF; two line ends in a row end an event. More of them are part of
# it: as events of their own, a read full of them would hold up every other stream.
BLANK_LINE = re.compile(rb"(?:\n(?:\n|\r\n?)|\r(?:\r\n?|\n(?:\n|\r\n?)))[\r\n]*")
BLANK_LINE_ENDINGS = (b"\n\n", b"\n\r\n", b"\r\r", b"\n\r", b"\r\r\n")
_LONGEST_OPEN = 2  # "\r\n" may be the first half of a blank line


class Event(NamedTuple):
    """One block of the stream with the blank line that ends it.

    Without data it is nothing to a client: comments, or fields that the standard ignores.
    """

    raw: bytes
    name: str | None
    data: bytes

    def __repr__(self) -> str:
        return f"Event(name={self.name!r})"  # what it says is nobody's to read


class EventCutter:
    """Cuts bytes, in whatever pieces they come, into events.

    The `raw` bytes of all events and then `pending` are the bytes that were fed. An event whose
    blank line ends with CR is told at once; an LF that follows belongs to the next one's bytes.
    """

    def __init__(self) -> None:
        self._open = bytearray()
        self._searched = 0  # no blank line starts before this
        self._at_start = True

    @property
    def pending(self) -> bytes:
        """The bytes of the event that has not ended."""
        return bytes(self._open)

    @property
    def pending_size(self) -> int:
        return len(self._open)

    def feed(self, data: bytes) -> list[Event]:
        self.take(data)
        return list(iter(self.next, None))

    def take(self, data: bytes) -> None:
        """For whoever does not want all events: `next` gives them one by one."""
        self._open += data

    def next(self) -> Event | None:
        """None: the bytes hold no further whole event."""
        found = BLANK_LINE.search(self._open, self._searched)
        if found is None:
            self._searched = max(0, len(self._open) - _LONGEST_OPEN)
            return None
        end = found.end()
        raw = bytes(self._open[:end])
        del found  # it holds the bytes fast
        del self._open[:end]
        self._searched = 0
        return self._event(raw)

    def close(self) -> Event | None:
        """At the end of the stream: see `close_event`."""
        return close_event(self.pending)

    def _event(self, raw: bytes) -> Event:
        if not self._at_start:
            return parse_event(raw)
        self._at_start = False
        event = parse_event(raw.removeprefix(BOM))
        return event if len(event.raw) == len(raw) else Event(raw, event.name, event.data)


def parse_event(raw: bytes) -> Event:
    """Read the fields of one block; only `event` and `data` matter to a relay."""
    if b"data" not in raw and b"event" not in raw:  # comments, maybe millions of short ones
        return Event(raw, None, b"")
    if raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
        return Event(raw, None, raw[6:-2])  # as almost all are
    name, lines = None, []
    for line in _lines(raw):
        field_name, _, value = line.partition(b":")
        if field_name == b"data":
            lines.append(value.removeprefix(b" "))
        elif field_name == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace") or None
    return Event(raw, name, b"\n".join(lines))


def close_event(pending: bytes) -> Event | None:
    """The event that a stream ended inside of, given the line ends it lacks; None if broken.

    Clients differ in whether they take such an event, so it must reach them properly ended. It
    counts as whole if its data is: JSON or `[DONE]`.
    """
    event = parse_event(pending.removeprefix(BOM))
    if event.data != DONE and not document.is_json(event.data):
        return None
    return Event(pending + missing_line_ends(pending), event.name, event.data)


def missing_line_ends(pending: bytes) -> bytes:
    """What turns the end of `pending` into a blank line. After a lone CR an LF would be no
    line end of its own."""
    return b"\n" if pending.endswith(b"\n") else b"\n\n"


def ends_between_events(tail: bytes | bytearray) -> bool:
    """Whether anything may be inserted after `tail`: it ends with a blank line, or is nothing."""
    return tail.endswith(BLANK_LINE_ENDINGS) or not tail


def _lines(raw: bytes) -> list[bytes]:
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw.split(b"\n")
