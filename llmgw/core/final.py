"""The client's answer after the last failure: verbatim for nodes, sanitized for accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from llmgw.core.answers import error_body
from llmgw.core.classify import Fault, Verdict, Whose
from llmgw.core.config import Account
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject, in_band_status
from llmgw.core.headers import downstream_headers, own_headers
from llmgw.core.sanitize import sanitize_message, sanitize_token
from llmgw.core.types import Dialect, Headers

ANSWERED = (FaultKind.STATUS, FaultKind.IN_BAND)
UNREACHED = (FaultKind.CONNECT, FaultKind.EXHAUSTED, FaultKind.LOST, FaultKind.DEAD)
EXPLAINED = (400, 413, 422)  # clients compact and correct by the provider's message
JSON = ("content-type", "application/json")

MESSAGES = {
    Whose.UPSTREAM: "the upstream failed to answer",
    Whose.FULL: "the upstream is busy",
    Whose.MODEL: "the upstream does not serve this model",
    Whose.CREDENTIAL: "the upstream refused the gateway's credential",
    Whose.CLIENT: "the upstream refused this request",
}


class Words(NamedTuple):
    """An error as one client is told it."""

    status: int
    message: str
    type: str
    code: str | int | None = None
    param: str | None = None


UNREACHABLE = Words(
    503, "no reachable node available", "service_unavailable", "no_reachable_backend"
)
TIMED_OUT = Words(504, "the upstream did not answer in time", "server_error", "upstream_timeout")
NO_WEBSOCKET = Words(
    426, "no upstream takes websockets", "invalid_request_error", "websocket_unsupported"
)
BROKEN = Words(502, "the upstream's answer was cut or invalid", "server_error", "upstream_error")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, with what it answered, if it did."""

    candidate: Candidate
    fault: Fault
    verdict: Verdict
    headers: Headers = ()  # of the response, as they came
    body: bytes = b""  # the whole answer as it came, in the client's dialect; b"": there is none
    error: ErrorObject | None = None  # what was found in the body or in the event


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """`code`, `type`, `param` and `message` are for an error event, where 200 has gone out."""

    status: int
    headers: Headers  # filtered, `content-type` included
    body: bytes
    message: str
    type: str
    code: str | int | None = None
    param: str | None = None


def final_failure(
    failures: Sequence[Failure], *, dialect: Dialect, request_id: str
) -> FinalAnswer:
    """The last answer that any candidate gave; where none gave one, one of ours.

    `failures` in the order of the attempts, none left out.
    """
    for failure in reversed(failures):
        if failure.fault.kind in ANSWERED:
            return _answer_of(failure, dialect, request_id)
    return _without_answer(failures[-1].fault.kind, dialect, request_id)


def _without_answer(kind: FaultKind, dialect: Dialect, request_id: str) -> FinalAnswer:
    headers = (JSON, *own_headers(request_id=request_id, dialect=dialect))
    if kind in UNREACHED:
        return _built(UNREACHABLE, headers, dialect)
    if kind is FaultKind.UNSUPPORTED:
        return _built(NO_WEBSOCKET, headers, dialect)
    return _built(TIMED_OUT if kind is FaultKind.TIMEOUT else BROKEN, headers, dialect)


def _answer_of(failure: Failure, dialect: Dialect, request_id: str) -> FinalAnswer:
    """The upstream's own answer, as far as this client may see it."""
    upstream = failure.candidate.upstream
    status = _status_of(failure, dialect)
    headers = downstream_headers(
        failure.headers, upstream=upstream, request_id=request_id, dialect=dialect, stream=False
    )
    if isinstance(upstream, Account):
        return _built(_sanitized(failure, upstream, status), _as_json(headers), dialect)
    words = _own_words(failure, status)
    if failure.body:
        if failure.fault.kind is FaultKind.IN_BAND:  # the head spoke of a stream, or of more
            headers = _as_json(headers)
        return FinalAnswer(headers=headers, body=failure.body, **words._asdict())
    return _built(words, _as_json(headers), dialect)


def _status_of(failure: Failure, dialect: Dialect) -> int:
    if failure.fault.kind is FaultKind.STATUS and failure.fault.status is not None:
        return failure.fault.status
    return in_band_status(failure.error, dialect)


def _own_words(failure: Failure, status: int) -> Words:
    """As the node said it."""
    error = failure.error or ErrorObject()
    message = error.message or MESSAGES[failure.verdict.whose]
    return Words(status, message, error.type or _type_of(status), error.code, error.param)


def _sanitized(failure: Failure, account: Account, status: int) -> Words:
    error = failure.error or ErrorObject()
    return Words(
        status,
        _message_of(failure, account, status),
        sanitize_token(error.type) or _type_of(status),
        sanitize_token(error.code) if isinstance(error.code, str) else error.code,
        sanitize_token(error.param),
    )


def _message_of(failure: Failure, account: Account, status: int) -> str:
    whose = failure.verdict.whose
    told = failure.error.message if failure.error else None
    if told and whose is Whose.CLIENT and status in EXPLAINED and not account.hide_messages:
        return sanitize_message(told)
    return MESSAGES[whose]


def _built(words: Words, headers: Headers, dialect: Dialect) -> FinalAnswer:
    body = error_body(dialect, **words._asdict())
    return FinalAnswer(headers=headers, body=body, **words._asdict())


def _as_json(headers: Headers) -> Headers:
    """The body is made anew: what told of the upstream's no longer holds."""
    return (JSON, *(line for line in headers if not line[0].startswith("content-")))


def _type_of(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"
