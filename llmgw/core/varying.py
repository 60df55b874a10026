"""Header lines that are new with each request: which they are is learnt, and heads are cut around
them, so that what was read of the rest once need not be read again.

A head's key is what stands between the values that were cut out. Between them stands `END`, which
no head holds, so a key tells its pieces; the values are plain, so they hold no line end. Two heads
with one key therefore differ in these values and in nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from llmgw.core.fields import END, LONGEST_LINE
from llmgw.core.headers import CREDENTIALS, HOP_BY_HOP
from llmgw.core.policy import CARRIERS
from llmgw.core.types import Headers
from llmgw.core.wire import SESSION_HEADERS

MOST_VARYING = 7  # lines of one head: beyond that a parser costs no more
MOST_SHAPES = 64  # sets of names that are watched at a time
MOST_WATCHED = 8  # heads of each

FIXED = (
    HOP_BY_HOP  # of the connection: how a body ends, and which lines are for the next hop
    | CREDENTIALS  # who asks, or a secret that is kept in no place but its line
    | CARRIERS
    | frozenset(SESSION_HEADERS)  # where the request would rather go
    | frozenset(
        {
            "accept",
            "accept-encoding",
            "content-encoding",  # the body has to be decoded
            "content-length",
            "content-type",  # where a form's fields begin
            "expect",  # the client waits for a word
            "host",  # without one a request is refused
            "origin",  # a browser's page is told that it may read the answer
            "via",  # our own id in it: a loop
            "x-stainless-retry-count",  # halves the retry budget
        }
    )
)
"""Lines whose value means something to the gateway: it never varies."""

FIXED_PREFIXES = ("access-control-", "anthropic-", "openai-", "sec-", "x-llmgw-")
"""The same of whole families: what a provider's API or a browser means by them, and our own."""

_VALUE = re.compile(rb"[ \t]*([!-~](?:[\t -~]*[!-~])?)[ \t]*")  # as `core/fields` has it


class Cut(NamedTuple):
    key: bytes
    values: tuple[bytes, ...]


@lru_cache(maxsize=1024)
def may_vary(name: str) -> bool:
    """Whether a line of this name, in lower case, means nothing to the gateway."""
    return name not in FIXED and not name.startswith(FIXED_PREFIXES)


def cut_out(head: bytes, marks: tuple[bytes, ...]) -> Cut | None:
    """Without the values behind the marks, which stand in this order (`marks_of`).

    None: it has not all of these lines, or a value that is not plain.
    """
    pieces: list[bytes] = []
    values: list[bytes] = []
    done = 0
    for mark in marks:
        at = head.find(mark, done)
        if at < 0:
            return None
        start = at + len(mark)
        end = head.find(b"\r\n", start)
        if end < 0:
            end = len(head)
        found = _VALUE.fullmatch(head, start, end)
        if found is None or end - at - 2 > LONGEST_LINE:
            return None
        values.append(found[1])
        pieces.append(head[done:start])
        done = end
    pieces.append(head[done:])
    return Cut(END.join(pieces), tuple(values))


def marks_of(head: bytes, varying: tuple[int, ...]) -> tuple[bytes, ...]:
    """What such lines of a plain head begin with, its line end before them included."""
    lines = head.split(b"\r\n")
    return tuple([b"\r\n" + lines[at + 1].partition(b":")[0] + b":" for at in varying])


class _Shape:
    """Heads that have the same names."""

    __slots__ = ("fixed", "varying", "watched")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.fixed = [at for at, name in enumerate(names) if not may_vary(name)]
        self.varying: tuple[int, ...] = ()
        self.watched: dict[tuple[str, ...], Headers] = {}  # the last, by the values of `fixed`

    def watch(self, headers: Headers) -> None:
        fixed = tuple([headers[at][1] for at in self.fixed])
        before = self.watched.pop(fixed, None)
        if before is not None:
            differ = [at for at in range(len(headers)) if headers[at] != before[at]]
            found = sorted({*self.varying, *differ})
            if len(found) <= MOST_VARYING:
                self.varying = tuple(found)
        elif len(self.watched) >= MOST_WATCHED:
            del self.watched[next(iter(self.watched))]
        self.watched[fixed] = headers


class Shapes:
    """Finds the lines in which heads differ that are otherwise the same."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._first: dict[tuple[str, ...], Headers] = {}  # of names that came once

    def varying(self, names: tuple[str, ...], headers: Headers) -> tuple[int, ...]:
        """Which of these lines vary, in order, as far as is known with them; `names` is theirs."""
        shape = self._shapes.get(names)
        if shape is None:
            first = self._first.pop(names, None)
            if first is None:
                if len(self._first) >= MOST_SHAPES:
                    del self._first[next(iter(self._first))]
                self._first[names] = headers
                return ()
            if len(self._shapes) >= MOST_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            shape = self._shapes[names] = _Shape(names)
            shape.watch(first)
        shape.watch(headers)
        return shape.varying
