"""Traces, where somebody wants them: what is told, and to whom.

Without a tracer nothing of this runs: the gateway looks once for each request whether it has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from llmgw.core.eligibility import Candidate
from llmgw.core.errors import GatewayError
from llmgw.core.types import PoolName
from llmgw.core.usage import Usage
from llmgw.core.wire import Call
from llmgw.runtime.answer import Errand, Result, Tools
from llmgw.runtime.journey import AttemptTrace, Journey
from llmgw.runtime.way import RunAttempt, Way

TRACEPARENT = "traceparent"  # https://www.w3.org/TR/trace-context/


class RequestTrace(Protocol):
    """One client request, from its plan to the end of its answer."""

    def attempt(self, candidate: Candidate, *, ordinal: int) -> AttemptTrace: ...

    def handoff(self, reason: str) -> None:
        """The attempt before failed, and another candidate is tried."""

    def end(self, *, status: int, attempts: int, usage: Usage, error: str | None) -> None: ...


class Tracer(Protocol):
    def begin(self, call: Call, *, pool: PoolName, model: str) -> RequestTrace:
        """`model` is the name if somebody knows it."""


@contextmanager
def tracing(
    tracer: Tracer, call: Call, pool: PoolName, model: str, journey: Journey
) -> Iterator[RequestTrace]:
    """Whatever way out is taken, the trace ends."""
    trace = tracer.begin(call, pool=pool, model=model)
    error: str | None = "cancelled"
    try:
        yield trace
        error = None
    except GatewayError as refused:
        journey.status, error = refused.status, refused.code or refused.type
        raise
    finally:
        trace.end(
            status=journey.status, attempts=journey.attempts, usage=journey.usage, error=error
        )


def traced(way: Way, trace: RequestTrace) -> Way:
    return replace(way, attempt=_TracedAttempts(way.attempt, trace))


class _TracedAttempts:
    """A span for each attempt, which ends with its stream."""

    def __init__(self, inner: RunAttempt, trace: RequestTrace) -> None:
        self._inner = inner
        self._trace = trace
        self._failed: str | None = None  # why the attempt before did

    async def __call__(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result:
        if self._failed is not None:
            self._trace.handoff(self._failed)
        journey = errand.journey
        span = self._trace.attempt(candidate, ordinal=journey.attempts)
        journey.span = span
        traced_errand = replace(errand, call=_with_parent(errand.call, span.traceparent))
        status, failed = None, "cancelled"
        try:
            result = await self._inner(tools, traced_errand, candidate, last=last)
            status = result.fault.status if result.fault is not None else None
            status = status or getattr(result, "status", None)
            failed = "" if result.fault is None else result.fault.kind.value
            return result
        finally:
            self._failed = failed or None
            journey.span = None
            span.end(status=status, error=failed or None)


def _with_parent(call: Call, traceparent: str) -> Call:
    """Nodes continue our trace; what goes to accounts carries none (`core/headers`)."""
    others = tuple(line for line in call.headers if line[0] != TRACEPARENT)
    return call._replace(headers=(*others, (TRACEPARENT, traceparent)))
