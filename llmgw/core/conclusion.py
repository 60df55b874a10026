"""What the last events of a stream say of it: over or not, well or not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from llmgw.core import document
from llmgw.core.failures import ErrorObject, find_error
from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import Event, parse_event
from llmgw.core.types import Dialect

LAST_EVENTS = 8  # behind a terminal event stand a usage chunk, `[DONE]` or a comment, no more

_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')


@dataclass(frozen=True, slots=True)
class Outcome:
    is_terminal: bool = False
    is_failed: bool = False
    error: ErrorObject | None = None  # of a failure, where an error object was found
    is_said: bool = False  # by an event of its own: no client looks at what follows


SAID = Outcome(is_terminal=True, is_said=True)


def outcome_of(text: bytes, dialect: Dialect) -> Outcome:
    """`text`: the last whole events, in order, with LF as the only line end."""
    last = text.rsplit(b"\n\n", LAST_EVENTS)
    events = [parse_event(block) for block in last[-LAST_EVENTS:]]
    sights = [sight_of(event, dialect) for event in events]
    if Sight.FAULT in sights:
        answer = document.parse(events[sights.index(Sight.FAULT)].data)
        return Outcome(True, True, find_error(answer), is_said=True)
    if Sight.TERMINAL in sights:
        return SAID
    if dialect not in (Dialect.CHAT, Dialect.COMPLETIONS):
        return Outcome()
    return Outcome(_are_choices_finished(map(parse_event, text.split(b"\n\n"))))


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
