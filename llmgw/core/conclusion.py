"""What the last events of a stream say of it: over or not, well or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from llmgw.core import document
from llmgw.core.failures import ErrorObject, find_error
from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import DONE, Event, parse_event
from llmgw.core.types import Dialect

_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')


@dataclass(frozen=True, slots=True)
class Outcome:
    is_terminal: bool = False
    is_failed: bool = False
    error: ErrorObject | None = None  # of a failure, where an error object was found


def outcome_of(blocks: Sequence[bytes], dialect: Dialect) -> Outcome:
    """`blocks`: the last events in order, without their blank lines, line ends as LF."""
    if dialect in (Dialect.RESPONSES, Dialect.MESSAGES):
        return _last_decisive(reversed(blocks), dialect)
    failed = _last_decisive(_mentioning(b"error", blocks), dialect)
    if failed.is_failed:
        return failed
    done = any(event.data == DONE for event in map(parse_event, _mentioning(DONE, blocks)))
    return Outcome(is_terminal=done or _are_choices_finished(map(parse_event, blocks)))


def _mentioning(word: bytes, blocks: Sequence[bytes]) -> Iterator[bytes]:
    """From the end. Parsing every event that a stream ends with would cost more than its relay."""
    return (block for block in reversed(blocks) if word in block)


def _last_decisive(blocks: Iterable[bytes], dialect: Dialect) -> Outcome:
    for event in map(parse_event, blocks):
        sight = sight_of(event, dialect)
        if sight is Sight.FAULT:
            return Outcome(True, True, find_error(document.parse(event.data)))
        if sight is Sight.TERMINAL:
            return Outcome(True)
    return Outcome()


def _are_choices_finished(events: Iterable[Event]) -> bool:
    """Each choice that the chunks speak of has given its reason to finish."""
    seen: set[object] = set()
    finished: set[object] = set()
    for event in events:
        answer = document.parse(event.data)
        if answer is None and _FINISH.search(event.data):  # too large to be here whole
            finished.add(0)
        choices = document.member(answer, "choices")
        for choice in choices if isinstance(choices, list) else ():
            index = document.count(choice, "index") or 0
            seen.add(index)
            if document.member(choice, "finish_reason"):
                finished.add(index)
    return bool(finished) and seen <= finished
