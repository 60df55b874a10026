"""What the admin pages know from requests: values that `runtime/observed.py` hands out.

An attempt says something about its assignment and nothing about the model's text: codes, counts
and times are all that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llmgw.core.types import RouteClass

BUCKETS = 30
WIDTH = 10.0  # seconds of one bucket: all of them are the five minutes that usage speaks of too


@dataclass(frozen=True, slots=True)
class Sample:
    """What one assignment was asked in `WIDTH` seconds."""

    attempts: int = 0
    failures: int = 0
    first_events: int = 0
    first_event_seconds: float = 0.0  # their sum

    @property
    def first_event(self) -> float | None:
        """The mean time to the first event; None where no stream began."""
        return self.first_event_seconds / self.first_events if self.first_events else None

    @property
    def error_share(self) -> float | None:
        return self.failures / self.attempts if self.attempts else None


def total_of(samples: Sequence[Sample]) -> Sample:
    return Sample(
        sum(one.attempts for one in samples),
        sum(one.failures for one in samples),
        sum(one.first_events for one in samples),
        sum(one.first_event_seconds for one in samples),
    )


QUIET = (Sample(),) * BUCKETS


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """One failed attempt: a code of ours and the upstream's status, never its text."""

    at: float  # unix time
    reason: str
    status: int | None
    model: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """All that requests have shown of one assignment since this gateway began."""

    samples: tuple[Sample, ...] = QUIET  # the oldest first
    errors: tuple[ErrorSeen, ...] = ()  # the newest first
    served: Mapping[tuple[str, RouteClass], float] = field(default_factory=dict)  # unix times
    routes: frozenset[str] = frozenset()  # that were served
    absent: frozenset[str] = frozenset()  # answered 405 or 501, and never served
    streamed: bool = False

    @property
    def total(self) -> Sample:
        return total_of(self.samples)


UNSEEN = Sighting()
