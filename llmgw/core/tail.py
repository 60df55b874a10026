"""The end of a stream whose bytes pass unparsed: kept, and read only when somebody asks.

A push costs one copy into the retained bytes. Whatever is asked for is looked for from the end.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from llmgw.core.conclusion import LAST_EVENTS, SAID, outcome_of
from llmgw.core.conclusion import Outcome as Outcome
from llmgw.core.sight import KINDS, Sight, sight_of
from llmgw.core.sse import (
    BOM,
    DONE,
    Event,
    EventCutter,
    close_event,
    ends_between_events,
    parse_event,
)
from llmgw.core.types import Dialect
from llmgw.core.usage import Usage, first_usage, merge, usage_of_body

RETAINED_BYTES = 64 * 1024
SLACK_BYTES = 32 * 1024  # trimming for less costs more than it saves
HEAD_BYTES = 512  # of an event too large to be retained: enough to tell its kind

COUNTED_BYTES = 8192  # of the last ones, whose events stand for all

_DONE_ENDS = (Dialect.CHAT, Dialect.COMPLETIONS)
_BRACKET = ord("]")
_LAST_OF_ALL = b"\n\ndata: [DONE]\n\n"
_DOUBTFUL = (b"error", b"\\u", b"\r")  # escapes may spell a word, and lines may end otherwise
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")  # as a stream with one kind of line end has them
_LONGEST_BLANK_LINE = 4
_TYPE = re.compile(rb'\{\s*"type"\s*:\s*"([\w.]+)"')
_SEQUENCE_NUMBER = re.compile(rb'"sequence_number"\s*:\s*(\d{1,15})')


class EndingKind(StrEnum):
    COMPLETE = "complete"  # a terminal event has passed
    MISSING_TERMINAL = "missing_terminal"  # one error event of ours has to follow
    BROKEN = "broken"  # inside an event: nothing can be said any more


class Ending(NamedTuple):
    """How the upstream's bytes ended. `completion` (line ends, or nothing) goes out first."""

    kind: EndingKind
    completion: bytes = b""


class Tail:
    """The last 64 KiB of one stream, beginning with its first bytes or at an event."""

    __slots__ = (
        "_ceiling",
        "_dialect",
        "_endings",
        "_head",
        "_kept",
        "_limit",
        "_marks",
        "_opening",
        "_says_done",
    )

    def __init__(self, dialect: Dialect, *, limit: int = RETAINED_BYTES) -> None:
        self._kept = bytearray()  # this and the next two are what each event asks for
        self._ceiling = limit + min(limit, SLACK_BYTES)
        self._says_done = dialect not in KINDS
        self._dialect = dialect
        self._limit = limit
        self._endings, self._marks = _LAST_EVENTS[dialect]
        self._head = b""  # how the event begins that `_kept` holds only the end of
        self._opening: Usage | None = None  # what a trimmed start told

    def push(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._ceiling:
            self._trim()

    @property
    def room(self) -> tuple[bytearray, int] | None:
        """Where to push what `take` would say no of at a glance, and how many bytes may be there
        then; None: each has to be looked at."""
        return (self._kept, self._ceiling) if self._says_done else None

    def take(self, data: bytes) -> bool:
        """Push, and tell whether it `is_done`: once for every event of every stream."""
        kept = self._kept
        kept += data
        if len(kept) > self._ceiling:
            self._trim()
        if self._says_done and len(data) > 5 and data[-3] != _BRACKET and data[-5] != _BRACKET:
            return False  # as all events but the last, which is closed by two line ends
        return self.is_done()

    def is_between_events(self) -> bool:
        """Whether a keepalive or an error event may follow what was pushed."""
        return ends_between_events(self._kept)

    def is_done(self) -> bool:
        """Whether what was pushed ends with the event after which nothing follows.

        Asked after every read, so it looks at the start of the last event and no further.
        """
        if not self._kept.endswith(self._endings):
            return False
        start = _start_of_last_event(self._kept)
        if not self._begins_with_mark(start):
            return False
        return sight_of(self._event(start), self._dialect) in (Sight.TERMINAL, Sight.FAULT)

    def outcome(self) -> Outcome:
        """What the events up to here say of the stream."""
        if self._ends_plainly():
            return SAID
        text = bytes(self._kept).removeprefix(BOM)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._head:
            text = _elided(self._head, text)
        whole, _, rest = text.rpartition(b"\n\n")
        return outcome_of(text if rest and close_event(rest) else whole, self._dialect)

    def ending(self, *, cut: bool = False, outcome: Outcome | None = None) -> Ending:
        """Asked once the upstream's bytes have ended; `cut`: not by their framing. `outcome`:
        that of now, where the caller has it already."""
        completion, outcome = self._completion(), outcome or self.outcome()
        if completion is None:
            return Ending(EndingKind.COMPLETE if outcome.is_said else EndingKind.BROKEN)
        is_unknown = self._dialect is Dialect.JSON  # which of its events is the last
        if outcome.is_terminal or (is_unknown and not cut):
            return Ending(EndingKind.COMPLETE, completion)
        return Ending(EndingKind.MISSING_TERMINAL, completion)

    def usage(self) -> Usage:
        text = bytes(self._kept)
        last = usage_of_body(text, self._dialect)
        if self._dialect is not Dialect.MESSAGES:
            return last
        return merge(self._opening or first_usage(text, self._dialect), last)

    def count_events(self, of_bytes: int) -> int:
        """About how many events the stream had: those that are retained stand for all."""
        lf, *others = _BLANK_LINES
        seen = self._kept[-COUNTED_BYTES:]
        events = seen.count(lf) or sum(map(seen.count, others))
        return round(events * max(of_bytes / max(len(seen), 1), 1.0))

    def next_sequence_number(self) -> int:
        """For an error event in a responses stream: one more than the last that passed."""
        at = self._kept.rfind(b'"sequence_number"')
        found = _SEQUENCE_NUMBER.match(self._kept, at) if at >= 0 else None
        return int(found[1]) + 1 if found else 0

    def _ends_plainly(self) -> bool:
        """Whether it is over as most streams are: by `[DONE]` behind events of which none can be
        an error, which would have to name itself."""
        kept = self._kept
        if self._dialect not in _DONE_ENDS or not kept.endswith(_LAST_OF_ALL):
            return False
        start = len(kept)
        for _ in range(LAST_EVENTS + 1):
            start = kept.rfind(b"\n\n", 0, start)
        last = kept[max(start, 0) :]
        return not any(word in last for word in _DOUBTFUL)

    def _trim(self) -> None:
        if self._opening is None and self._dialect is Dialect.MESSAGES:
            self._opening = first_usage(bytes(self._kept), self._dialect)
        excess = len(self._kept) - self._limit
        start = _end_of_a_blank_line(self._kept, excess + _LONGEST_BLANK_LINE)
        if start:
            self._head = b""
            del self._kept[:start]
        if len(self._kept) > self._ceiling:  # one event is larger than what is retained
            self._head = self._head or bytes(self._kept[:HEAD_BYTES])
            del self._kept[: len(self._kept) - self._limit]

    def _begins_with_mark(self, start: int) -> bool:
        if start == 0 and self._head:
            return self._head.startswith(self._marks)
        return self._kept.startswith(self._marks, start)

    def _event(self, start: int) -> Event:
        raw = bytes(self._kept[start:])
        return parse_event(_elided(self._head, raw) if start == 0 and self._head else raw)

    def _completion(self) -> bytes | None:
        """The line ends that the last event lacks; None if they would not make it whole."""
        if self.is_between_events():
            return b""
        cutter = EventCutter()
        cutter.feed(self._head + bytes(self._kept))
        closed = cutter.close()
        if closed is not None:
            return closed.raw[cutter.pending_size :]
        return _completion_of_comments(cutter.pending)


def _start_of_last_event(kept: bytearray) -> int:
    """Of the event that ends with the blank line at the end of the bytes."""
    lf, crlf, cr = _BLANK_LINES
    blank = lf if kept.endswith(lf) else crlf if kept.endswith(crlf) else cr
    before = kept.rfind(blank, 0, -len(blank))
    return 0 if before < 0 else before + len(blank)


def _end_of_a_blank_line(kept: bytearray, limit: int) -> int:
    """Of the last one that ends before `limit`; 0 if there is none."""
    for blank in _BLANK_LINES:
        before = kept.rfind(blank, 0, limit)
        if before >= 0:
            return before + len(blank)
    return 0


def _elided(head: bytes, rest: bytes) -> bytes:
    """An event without its middle. Its data is no JSON any more, so its kind becomes its name."""
    kind = _TYPE.search(head)
    name = b"event: " + kind[1] + b"\n" if kind and b"event:" not in head[: kind.start()] else b""
    return name + head + rest


def _completion_of_comments(pending: bytes) -> bytes | None:
    """A comment may be followed by anything once its line has ended."""
    lines = pending.removeprefix(BOM).splitlines(keepends=True)
    if not all(line.startswith((b":", b"\n", b"\r")) for line in lines):
        return None
    return b"" if pending.endswith((b"\n", b"\r")) else b"\n"


def _last_events_of(dialect: Dialect) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """How an event after which nothing follows may end, and begin, in the forms in use."""
    if dialect not in KINDS:
        return tuple(DONE + one for one in _BLANK_LINES), (b"data: [DONE]", b"data:[DONE]")
    last = [kind for kind, sight in KINDS[dialect].items() if sight is not Sight.HIDDEN]
    forms = ("event: {}", "event:{}", 'data: {{"type":"{}"', 'data: {{"type": "{}"')
    marks = (form.format(kind).encode() for kind in (*last, "error") for form in forms)
    return _BLANK_LINES, tuple(marks)


_LAST_EVENTS = {dialect: _last_events_of(dialect) for dialect in Dialect}
