"""The client's answer after the last failure: verbatim for nodes, sanitized for accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmgw.core.classify import Fault, Verdict
from llmgw.core.eligibility import Candidate
from llmgw.core.types import Dialect, Headers

if TYPE_CHECKING:
    from llmgw.core.failures import ErrorObject


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, with what it answered, if it did."""

    candidate: Candidate
    fault: Fault
    verdict: Verdict
    headers: Headers = ()  # of the response, as they came
    body: bytes = b""  # of a whole (non-stream) response, as it came; b"": rebuild it from `error`
    error: ErrorObject | None = None  # what was found in the body or in the event


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """`code`, `type`, `param` and `message` are for an error event, where 200 has gone out."""

    status: int
    headers: Headers  # filtered, `content-type` included
    body: bytes
    message: str
    type: str
    code: str | int | None
    param: str | None


def final_failure(
    failures: Sequence[Failure], *, dialect: Dialect, request_id: str
) -> FinalAnswer:
    """The last answer that any candidate gave; where none gave one, one of ours.

    `failures` in the order of the attempts, none empty.
    """
    raise NotImplementedError
