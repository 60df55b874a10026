"""What is noted of one request on its way, for the access log and for whoever explains."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from llmgw.core.types import AssignmentId
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.observe.metrics import STAGE_DURATION


class Stage(StrEnum):
    """Where the gateway's own time goes; waiting for clients, upstreams or a place is none."""

    PARSE = "parse"  # who asks for what
    PLAN = "plan"  # who may serve it, in which order
    ANSWER = "answer"  # judging an answer, and its head on the way to the client


_SPENT = {stage: STAGE_DURATION.labels(stage) for stage in Stage}


def spent(stage: Stage, seconds: float) -> float:
    """Count them; they come back."""
    _SPENT[stage].observe(seconds)
    return seconds


class AttemptTrace(Protocol):
    """One try on one upstream, until its stream ends."""

    @property
    def traceparent(self) -> str: ...

    def first_visible(self) -> None: ...

    def end(self, *, status: int | None, error: str | None) -> None: ...


@dataclass(slots=True, eq=False)
class Journey:
    """Belongs to one request; every attempt of it adds to the same one."""

    model_label: str | None = None  # the model, as metrics name it
    assignment: AssignmentId | None = None  # of the last attempt
    attempts: int = 0
    attempt_began: float = 0.0  # monotonic
    overhead: float = 0.0  # seconds
    first_event: float | None = None  # seconds until a stream's first visible event
    status: int = 0  # of the answer, once it has been settled
    usage: Usage = UNKNOWN
    span: AttemptTrace | None = None  # of the attempt that runs, where traces are wanted

    def spent(self, stage: Stage, since: float) -> None:
        """From `since`, a reading of `time.perf_counter`, until now."""
        self.overhead += spent(stage, time.perf_counter() - since)

    def attempt(self, assignment: AssignmentId, *, now: float) -> None:
        self.assignment = assignment
        self.attempts += 1
        self.attempt_began = now
