"""The attempt loop's decisions: who is tried next, and how each attempt is booked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llmgw.core.classify import Verdict
from llmgw.core.eligibility import Candidate
from llmgw.core.plan import RoutePlan


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RETRYABLE_FAILED = "retryable_failed"  # another candidate was then dispatched


class Ending(StrEnum):
    """Why no other candidate is tried."""

    FINAL = "final"  # the verdict says so
    VISIBLE = "visible"
    EXHAUSTED = "exhausted"
    PINNED = "pinned"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try on one assignment."""

    ordinal: int
    candidate: Candidate
    owner: str | None  # of the probe slot it was admitted with
    started: float
    ended: float | None = None
    outcome: Outcome | None = None  # None: still running
    verdict: Verdict | None = None
    status: int | None = None
    handed_on: bool = False  # its effects were applied before the handoff


@dataclass(frozen=True, slots=True)
class Handoff:
    """Go on with `failover.candidate`; apply the attempt's changes first."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Finish:
    attempt: Attempt
    ending: Ending


class Failover:
    """Walks a route plan.

    For each `candidate`: `skip()` it where its probe lease is lost, else `dispatch()` it, then
    `record()`, `succeed()` or `cancel()`.
    """

    def __init__(self, plan: RoutePlan, *, may_move: bool = True) -> None:
        """`may_move`: False for a hard pin."""
        raise NotImplementedError

    @property
    def candidate(self) -> Candidate | None:
        """Who is next to be dispatched, or has been; None: nobody is left."""
        raise NotImplementedError

    @property
    def is_last(self) -> bool:
        """The first-event timeout is off for the last candidate."""
        raise NotImplementedError

    @property
    def log(self) -> tuple[Attempt, ...]:
        raise NotImplementedError

    @property
    def handoffs(self) -> int:
        raise NotImplementedError

    def skip(self) -> None:
        """Its probe lease was lost: no attempt."""
        raise NotImplementedError

    def dispatch(self, *, now: float, owner: str | None = None) -> Attempt:
        raise NotImplementedError

    def record(
        self,
        verdict: Verdict,
        *,
        now: float,
        visible: bool,
        budget_ok: bool = True,
        status: int | None = None,
    ) -> Handoff | Finish:
        raise NotImplementedError

    def succeed(self, *, now: float, status: int = 200) -> Attempt:
        raise NotImplementedError

    def cancel(self, *, now: float) -> None:
        """The client left: whatever runs is cancelled."""
        raise NotImplementedError
