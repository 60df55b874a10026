"""What an event shows the client: nothing yet, output, the end, or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from llmgw.core import document
from llmgw.core.failures import find_error, is_failed_incomplete
from llmgw.core.sse import DONE, Event
from llmgw.core.types import Dialect


class Sight(Enum):
    HIDDEN = auto()  # may be dropped with its attempt: the client would not miss it
    VISIBLE = auto()
    TERMINAL = auto()  # the answer is complete
    FAULT = auto()  # terminal too: the answer failed


HEARTBEATS = frozenset({"ping", "keepalive"})
INCOMPLETE = "response.incomplete"

KINDS: Mapping[Dialect, Mapping[str, Sight]] = {
    Dialect.RESPONSES: {
        "response.created": Sight.HIDDEN,
        "response.queued": Sight.HIDDEN,
        "response.in_progress": Sight.HIDDEN,
        "response.completed": Sight.TERMINAL,
        "response.incomplete": Sight.TERMINAL,
        "response.failed": Sight.FAULT,
    },
    Dialect.MESSAGES: {
        "message_start": Sight.HIDDEN,
        "message_stop": Sight.TERMINAL,
    },
}
"""Events of the typed dialects that their kind alone decides; `error` is a fault in all."""

PARTS: Mapping[str, str] = {
    "response.output_item.added": "item",
    "response.content_part.added": "part",
    "content_block_start": "content_block",
}
"""Events that announce a part, and the member it lies in: hidden while the part is empty."""

_ENVELOPE = frozenset(
    {"id", "type", "object", "status", "role", "phase", "encrypted_content", "signature"}
)
"""Members of an announced part that show the client nothing."""


def sight_of(event: Event, dialect: Dialect) -> Sight:
    """By the table of the dialect; what no table knows is visible, so that it is never lost."""
    if not event.data:  # comments, or an empty event: the standard dispatches neither
        return Sight.HIDDEN
    if event.name == "error":
        return Sight.FAULT
    if event.data == DONE and dialect not in KINDS:
        return Sight.TERMINAL
    answer = document.parse(event.data)
    if dialect in KINDS:
        return _sight_of_typed(event, answer, KINDS[dialect])
    if dialect is Dialect.JSON:
        return Sight.FAULT if find_error(answer) else Sight.VISIBLE  # only its failure is known
    return _sight_of_chunk(event, answer)


def kind_of(event: Event, answer: object) -> str | None:
    """The event's type: as its data says, else as its name says."""
    return document.text(answer, "type") or event.name


def _sight_of_chunk(event: Event, answer: object) -> Sight:
    if document.member(answer, "error") or find_error(answer):
        return Sight.FAULT
    if not answer or kind_of(event, answer) in HEARTBEATS:
        return Sight.HIDDEN
    if not isinstance(answer, dict):
        return Sight.VISIBLE
    if "choices" not in answer:
        return Sight.HIDDEN if "usage" in answer else Sight.VISIBLE
    return Sight.VISIBLE if _shows(answer["choices"]) else Sight.HIDDEN


def _shows(choices: object) -> bool:
    if not isinstance(choices, list):
        return bool(choices)
    return any(_choice_shows(choice) for choice in choices)


def _choice_shows(choice: object) -> bool:
    """Any member of the delta but the role may be output: text, reasoning, a tool call, a
    refusal, audio, or what a server has invented since."""
    if not isinstance(choice, dict):
        return bool(choice)
    if choice.get("text") or choice.get("finish_reason"):
        return True
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        return bool(delta)
    return any(value for name, value in delta.items() if name != "role")


def _sight_of_typed(event: Event, answer: object, kinds: Mapping[str, Sight]) -> Sight:
    kind = kind_of(event, answer)
    if kind == "error" or (kind is None and find_error(answer)):
        return Sight.FAULT
    if kind in HEARTBEATS or kind is None:
        return Sight.HIDDEN if kind else Sight.VISIBLE
    if kind == INCOMPLETE and is_failed_incomplete(answer):
        return Sight.FAULT
    if kind in kinds:
        return kinds[kind]
    if kind in PARTS:
        return _sight_of_part(document.member(answer, PARTS[kind]))
    is_empty_delta = kind.endswith(".delta") and document.member(answer, "delta") in ("", {}, [])
    return Sight.HIDDEN if is_empty_delta else Sight.VISIBLE


def _sight_of_part(part: object) -> Sight:
    if not isinstance(part, dict):
        return Sight.VISIBLE
    shown = any(value for name, value in part.items() if name not in _ENVELOPE)
    return Sight.VISIBLE if shown else Sight.HIDDEN
