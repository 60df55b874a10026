"""Lines of the access log, without formatting what was formatted before.

Of sixteen fields eleven are the same in most lines. What the general formatter makes of those is
kept, cut where time, sizes and the request's id belong; what can't be put there as it is goes
through the general formatter, so that every line is the one that it would have made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from llmgw.observe.timestamps import MILLISECONDS, date_and_time, timestamp

Fields = dict[str, object]
Format = Callable[[Fields, int], str]

LOGGER: Final = "llmgw.access"
MAX_CUTS: Final = 2000
MAX_NUMBERS: Final = 200

# As every formatter writes them, in the order in which a line has them.
_MARKS: Final = ("2001-02-03T04:05:06.789Z", 8111111111111118, 0.311113, "req_7f7f", 0.511115)


@dataclass(frozen=True, slots=True, eq=False)
class Stencil:
    """What many answered requests have in common: names of ours and codes, nothing of a client.

    Made once for each such likeness and known by its identity.
    """

    method: str
    route: str
    status: int
    ending: str
    key: str | None
    model: str | None
    assignment: str | None
    attempts: int

    def fields(self, size: int, seconds: float, request_id: str, overhead: float) -> Fields:
        """Of one request, in the order of a line."""
        return {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "bytes": size,
            "seconds": round(seconds, 6),
            "request_id": request_id,
            "ending": self.ending,
            "key": self.key,
            "model": self.model,
            "assignment": self.assignment,
            "attempts": self.attempts,
            "overhead": round(overhead, 6),
        }


Collected = tuple[float, Stencil, int, float, str, float] | tuple[float, Fields]
"""When (unix seconds), and of what: a stencil's holes in order, or all fields of a line."""


class AccessLines:
    """What one formatter makes of answered requests."""

    def __init__(self, general: Format) -> None:
        self._general = general
        self._cuts: dict[Stencil, tuple[str, ...]] = {}  # (): it can't be cut
        self._numbers: dict[str, str] = {}

    def text(self, collected: Iterable[Collected]) -> str:
        """All of them, each with its end of line. One loop: a call costs what a number does."""
        lines, last, date = [], -1, ""
        for one in collected:
            if len(one) == 2:
                lines.append(self._line(timestamp(one[0]), one[1]))
                continue
            at, stencil, size, seconds, request_id, overhead = one
            cut = self._cuts.get(stencil)
            if cut is None:
                cut = self._cut(stencil)
            if not (cut and request_id.isascii() and request_id.isidentifier()):
                fields = stencil.fields(size, seconds, request_id, overhead)
                lines.append(self._line(timestamp(at), fields))
                continue
            second = int(at)
            if second != last:
                last, date = second, date_and_time(second)
            took, own = f"{seconds:.6f}", f"{overhead:.6f}"
            if took[-1] == "0" or not 1e-4 <= seconds < 1e9:
                took = self._number(took, seconds)
            if own[-1] == "0" or not 1e-4 <= overhead < 1e9:
                own = self._number(own, overhead)
            to_time, to_size, to_seconds, to_id, to_overhead, end = cut
            lines.append(
                f"{to_time}{date}{MILLISECONDS[int((at - second) * 1000)]}{to_size}{size}"
                f"{to_seconds}{took}{to_id}{request_id}{to_overhead}{own}{end}"
            )
        return "".join(lines)

    def _line(self, time: str, fields: Fields) -> str:
        known: Fields = {"time": time, "level": "info", "message": "request", "logger": LOGGER}
        return self._general(known | fields, logging.INFO) + "\n"

    def _cut(self, stencil: Stencil) -> tuple[str, ...]:
        if len(self._cuts) >= MAX_CUTS:
            self._cuts.clear()
        time, size, seconds, request_id, overhead = _MARKS
        fields = stencil.fields(size, seconds, request_id, overhead)
        is_plain = all(one.isprintable() for one in fields.values() if isinstance(one, str))
        cut = _between(self._line(time, fields), map(str, _MARKS)) if is_plain else ()
        self._cuts[stencil] = cut
        return cut

    def _number(self, text: str, value: float) -> str:
        """Rounded to microseconds. From 0.0001 on every formatter writes all digits, and up to
        there are zeros behind them that it leaves out."""
        if 1e-4 <= value < 1e9:
            return _trimmed(text)
        return self._numbers.get(text) or self._rare_number(text, round(value, 6))

    def _rare_number(self, text: str, value: float) -> str:
        """As the general formatter has it, found between what it puts around a number."""
        before, _, after = self._general({"n": 0.5}, logging.INFO).partition("0.5")
        whole = self._general({"n": value}, logging.INFO)
        number = whole[len(before) : len(whole) - len(after)]
        if len(self._numbers) < MAX_NUMBERS:
            self._numbers[text] = number
        return number


def _between(line: str, marks: Iterable[str]) -> tuple[str, ...]:
    """What stands before each mark and after the last; (): a name holds what looks like one."""
    parts = []
    for mark in marks:
        if line.count(mark) != 1:
            return ()
        part, _, line = line.partition(mark)
        parts.append(part)
    return (*parts, line)


def _trimmed(text: str) -> str:
    """One digit stays behind the point."""
    text = text.rstrip("0")
    return f"{text}0" if text[-1] == "." else text
