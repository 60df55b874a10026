"""Header lines as bytes, and heads that come again and again rendered once."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from llmgw.core.headers import STREAM_HEADERS, passed_on
from llmgw.core.types import Headers

MOST_FORMS = 1024
EVENT_STREAM = "text/event-stream"
OWN = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "request-id",
        "server",
        "transfer-encoding",
        "x-request-id",
    }
)
"""What the server says itself: such a line is dropped where a caller brings one."""


def header_lines(headers: Headers) -> bytes:
    """Raises `ValueError` for a name or value that would break its line (RFC 9112, 2.2)."""
    lines = [f"{name}: {value}\r\n" for name, value in headers if name not in OWN]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise ValueError("a header breaks its line")
    return text.encode("latin-1")


class AnswerKind(Enum):
    """What an upstream's answer is, as far as its head tells."""

    EVENTS = auto()
    JSON = auto()
    OTHER = auto()
    ENCODED = auto()  # although it was asked for as it is


class AnswerForm(NamedTuple):
    kind: AnswerKind
    lines: bytes  # of the client's answer, but for those that the server says


class AnswerForms:
    """Remembers the forms of heads. One that comes again and again is the same object each time
    (`llmgw/upstream/familiar.py`), and to look at that is all it costs."""

    def __init__(self) -> None:
        self._known: tuple[dict[int, tuple[Headers, AnswerForm]], ...] = ({}, {})

    def of(self, headers: Headers, *, from_account: bool) -> AnswerForm:
        """Raises `ValueError` for a line that can't be passed on as one."""
        forms = self._known[from_account]
        known = forms.get(id(headers))
        if known is not None and known[0] is headers:
            return known[1]
        form = form_of(headers, from_account=from_account)
        if len(forms) >= MOST_FORMS:
            forms.clear()
        forms[id(headers)] = headers, form  # held here, it keeps its id
        return form


def form_of(headers: Headers, *, from_account: bool) -> AnswerForm:
    """Raises `ValueError` for a line that can't be passed on as one."""
    named = dict(reversed(headers))
    kind = _kind_of(named.get("content-type", ""))
    stream = kind is AnswerKind.EVENTS
    if named.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        kind = AnswerKind.ENCODED
    kept = passed_on(headers, from_account=from_account, stream=stream)
    return AnswerForm(kind, header_lines((*kept, *(STREAM_HEADERS if stream else ()))))


def _kind_of(content_type: str) -> AnswerKind:
    if content_type.lower().startswith(EVENT_STREAM):
        return AnswerKind.EVENTS
    return AnswerKind.JSON if is_json(content_type) else AnswerKind.OTHER


def is_json(content_type: str) -> bool:
    """One document: a line of JSON after another (`application/x-ndjson`) is none."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))
