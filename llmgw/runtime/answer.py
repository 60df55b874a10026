"""What an attempt ends in, and what its pieces share: the request out, an error answer back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from llmgw.core.classify import Fault
from llmgw.core.config import Config
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.failures import ErrorObject, has_bare_detail, parse_error
from llmgw.core.headers import downstream_headers, retry_after_of, upstream_headers
from llmgw.core.http import ResponseHead, UpstreamRequest
from llmgw.core.types import AssignmentId, Headers
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.core.wire import Call
from llmgw.observe.metrics import ASSIGNMENT_FIRST_VISIBLE, TIME_TO_FIRST_EVENT, child
from llmgw.runtime.early import EarlyCommit
from llmgw.runtime.journey import Journey
from llmgw.runtime.pins import Keeper
from llmgw.runtime.ports import Downstream, Exchange, Upstreams
from llmgw.runtime.registry import Registry
from llmgw.runtime.wheel import Wheel

ERROR_BODY_LIMIT = 1024 * 1024  # a longer error answer is no answer
ERROR_BODY_TIMEOUT = 30.0  # an upstream that has said its status says the rest soon, seconds


class Served(NamedTuple):
    """The whole answer is out. `fault` is an error that the upstream itself put into it."""

    status: int
    usage: Usage = UNKNOWN
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of this attempt has reached the client."""

    fault: Fault
    headers: Headers = ()
    body: bytes = b""
    error: ErrorObject | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """It failed after visible output; the client has been told as far as it can be."""

    fault: Fault
    status: int
    usage: Usage = UNKNOWN


Result = Served | Refused | Broken


@dataclass(frozen=True, slots=True)
class Tools:
    """What every attempt works with; made once by the gateway."""

    upstreams: Upstreams
    registry: Registry
    wheel: Wheel
    instance: str
    clock: Callable[[], float]
    wall: Callable[[], float]


@dataclass(slots=True)
class Errand:
    """One client request on its way: what all its attempts share."""

    call: Call
    config: Config
    downstream: Downstream
    model_label: str
    early: EarlyCommit | None = None  # streaming calls only
    keeper: Keeper | None = None  # of calls that make something at an upstream
    started: float = 0.0  # monotonic
    explain: bool = False  # the client may see how many attempts it took, and the overhead
    journey: Journey = field(default_factory=Journey)

    @property
    def explanation(self) -> Headers:
        if not self.explain:
            return ()
        return (
            ("x-llmgw-attempts", str(self.journey.attempts)),
            ("x-llmgw-overhead-ms", f"{self.journey.overhead * 1000:.3f}"),
        )

    def shown(self, assignment: AssignmentId, *, now: float) -> None:
        """The client is about to see the first visible event of a stream."""
        journey = self.journey
        journey.first_event = now - self.started
        TIME_TO_FIRST_EVENT.observe(journey.first_event)
        child(ASSIGNMENT_FIRST_VISIBLE, assignment).observe(now - journey.attempt_began)
        if journey.span is not None:
            journey.span.first_visible()

    def seen(self) -> None:
        """Output is about to reach the client: the early commit has nothing more to do."""
        if self.early is not None:
            self.early.stop()


def request_for(candidate: Candidate, call: Call, *, instance: str) -> UpstreamRequest:
    """The client's request as this upstream gets it."""
    headers = upstream_headers(
        call.headers, upstream=candidate.upstream, request_id=call.request_id, instance=instance
    )
    return UpstreamRequest(call.route.method, call.target, headers, call.body)


def answer_headers(
    head: ResponseHead, candidate: Candidate, errand: Errand, *, stream: bool
) -> Headers:
    """The headers of the upstream's answer as the client gets them."""
    headers = downstream_headers(
        head.headers,
        upstream=candidate.upstream,
        request_id=errand.call.request_id,
        dialect=errand.call.route.dialect,
        stream=stream,
    )
    return (*headers, *errand.explanation)


async def refused_by_status(exchange: Exchange, *, wall: float) -> Refused:
    """An error status: its body is read, bounded, for the code in it and for the client.

    Raises `UpstreamError` (CUT, INVALID, TIMEOUT).
    """
    head = exchange.head
    read: tuple[bytes, bool] | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            read = await read_up_to(exchange, ERROR_BODY_LIMIT)
    if read is None:
        raise UpstreamError(FaultKind.TIMEOUT, "error body")
    body, whole = read
    if not whole:
        raise UpstreamError(FaultKind.INVALID, "error body over the limit")
    error = parse_error(body)
    fault = Fault.from_error(
        FaultKind.STATUS,
        error,
        status=head.status,
        bare_detail=error is None and has_bare_detail(body),
        retry_after=retry_after_of(head.headers, wall=wall),
    )
    return Refused(fault, head.headers, body, error)


def fault_inside(
    head: ResponseHead, kind: FaultKind, error: ErrorObject | None, *, wall: float
) -> Fault:
    """A failure in an answer that began well; its head may still say when to come back."""
    later = retry_after_of(head.headers, wall=wall)
    return Fault.from_error(kind, error, status=head.status, retry_after=later)


async def read_up_to(exchange: Exchange, limit: int) -> tuple[bytes, bool]:
    """The body, and whether that is all of it: reading stops once it is longer than `limit`."""
    parts = []
    room = limit
    while data := await exchange.read():
        parts.append(data)
        room -= len(data)
        if room < 0:
            return b"".join(parts), False
    return parts[0] if len(parts) == 1 else b"".join(parts), True
