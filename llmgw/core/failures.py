"""Errors as upstreams word them: where the error object lies and which status it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from llmgw.core import document
from llmgw.core.types import Dialect

MAX_CLASSIFIED_BYTES = 64 * 1024
MODEL_NOT_FOUND = "model_not_found"

CLIENT_TYPES = frozenset(
    {
        "invalid_request_error",
        "BadRequestError",
        "not_found_error",
        "permission_error",
        "authentication_error",
    }
)
"""Types that say the request itself is at fault, where no code says otherwise."""

CLIENT_CODES = frozenset(
    {
        "context_length_exceeded",
        "string_above_max_length",
        "previous_response_not_found",
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
    }
)
"""Codes of a continuation miss, a context-length or a content error."""

SERVER_NAMES = frozenset(
    {"InternalServerError", "ServiceUnavailableError", "api_error", "server_error"}
)
"""Codes and types of a fault of the upstream's own; as a code they outweigh a client's type."""

_STATUS_OF: dict[str, int] = {
    MODEL_NOT_FOUND: 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 503,
    "server_is_overloaded": 503,
    **dict.fromkeys(CLIENT_TYPES | CLIENT_CODES, 400),
    **dict.fromkeys(SERVER_NAMES, 502),
}
_PLACES = (
    ("response", "error"),
    ("error",),
    ("response", "status_details", "error"),
    ("status_details", "error"),
)
_HOLDERS = frozenset(place[0] for place in _PLACES)
_LABEL_CHARACTERS = 64
_WRITTEN_BITS = 64  # a longer number is no code, and could not be written again
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.:/\[\] -]")


@dataclass(frozen=True, slots=True)
class ErrorObject:
    """What an upstream says went wrong. `code`, `type` and `param` are bounded and plain, safe
    to log; `message` is free text, for this client at most."""

    code: str | int | None = None
    type: str | None = None
    param: str | None = None
    message: str | None = field(default=None, repr=False)

    @property
    def lacks_code(self) -> bool:
        """No string says what it is; engines send the status as a number there."""
        return not isinstance(self.code, str)

    @property
    def is_codeless_model_miss(self) -> bool:
        """One of the two shapes that mean an unknown model where provenance backs them."""
        if not self.lacks_code or self.param != "model":
            return False
        return self.type == "invalid_request_error" or (
            self.type == "NotFoundError" and self.code in (None, 404)
        )


def find_error(answer: object) -> ErrorObject | None:
    """The error object of a parsed answer or event; None if there is none."""
    found = _error_member(answer)
    if found is None:
        return None
    kind = document.text(found, "type")
    return ErrorObject(
        code=_code(found.get("code")),
        type=None if kind == "error" else _label(kind),  # "error" marks the envelope
        param=_label(document.text(found, "param")),
        message=_encodable(document.text(found, "message")),
    )


def parse_error(body: bytes) -> ErrorObject | None:
    """The same for a body, which is not classified when it is large."""
    if len(body) > MAX_CLASSIFIED_BYTES:
        return None
    return find_error(document.parse(body))


def has_bare_detail(body: bytes) -> bool:
    """`{"detail": ...}`: the web framework's answer, which says nothing about a model."""
    answer = document.parse(body) if len(body) <= MAX_CLASSIFIED_BYTES else None
    return isinstance(answer, dict) and "detail" in answer and _error_member(answer) is None


def is_failed_incomplete(answer: object) -> bool:
    """Whether an incomplete response (as an event's `response`, or the response itself) failed,
    and did not just reach a limit that the client set or run into a filter."""
    response = document.member(answer, "response") or answer
    reason = document.text(response, "incomplete_details", "reason")
    limits = (None, "max_output_tokens", "content_filter")
    return _error_member(answer) is not None or reason not in limits


def in_band_status(error: ErrorObject | None, dialect: Dialect) -> int:
    """The status of a final failure that came inside a 200 answer, before the client had any."""
    if error is None:
        return 502
    if isinstance(error.code, int) and 400 <= error.code <= 599:
        return error.code
    if error.is_codeless_model_miss:
        return 404
    status = _STATUS_OF.get(str(error.code)) or _STATUS_OF.get(str(error.type)) or 502
    return 529 if status == 503 and dialect is Dialect.MESSAGES else status


def error_answer(answer: object, dialect: Dialect) -> bytes:
    """The upstream's error object, in its own words, as the body of an error answer."""
    envelope: dict[str, object] = {"error": _error_member(answer)}
    if dialect is Dialect.MESSAGES:
        envelope = {"type": "error", **envelope}
    return document.dump_as_read(envelope)


def _error_member(answer: object) -> dict[str, object] | None:
    if isinstance(answer, dict) and _HOLDERS.isdisjoint(answer):
        return answer if "error" in (answer.get("type"), answer.get("object")) else None
    for place in _PLACES:
        found = document.member(answer, *place)
        if isinstance(found, dict):
            return found
    if isinstance(answer, dict) and "error" in (answer.get("type"), answer.get("object")):
        return answer
    return None


def _code(value: object) -> str | int | None:
    if isinstance(value, str):
        return _label(value)
    return value if type(value) is int and value.bit_length() < _WRITTEN_BITS else None


def _encodable(message: str | None) -> str | None:
    """Half a surrogate pair, which servers cut text to, could not be sent on."""
    return message and message.encode("utf-8", "replace").decode()


def _label(value: str | None) -> str | None:
    return None if value is None else _NO_LABEL.sub("_", value[:_LABEL_CHARACTERS])
