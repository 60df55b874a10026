"""The attempt loop's decisions: who is tried next, and how each attempt is booked."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

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
    PINNED = "pinned"
    EXHAUSTED = "exhausted"
    OVER_BUDGET = "over_budget"


class Attempt(NamedTuple):
    """One try on one assignment."""

    ordinal: int  # from 1
    candidate: Candidate
    owner: str | None  # of the probe slot it was admitted with
    started: float
    ended: float | None = None
    outcome: Outcome | None = None  # None: still running
    verdict: Verdict | None = None
    status: int | None = None
    handed_on: bool = False  # its effects were applied before the handoff


class Handoff(NamedTuple):
    """Go on with `failover.candidate`; apply the attempt's changes first."""

    attempt: Attempt


class Finish(NamedTuple):
    attempt: Attempt
    ending: Ending


class Failover:
    """Walks a route plan.

    For each `candidate`: `skip()` it where its probe lease is lost, else `dispatch()` it, then
    `record()`, `succeed()` or `cancel()`. After a `Handoff` nobody may be left, if all other
    leases are lost: then `candidate` is None, and the attempt that failed stays `failed`.
    """

    def __init__(self, plan: RoutePlan, *, may_move: bool = True) -> None:
        """`may_move`: False for a hard pin."""
        self._candidates = plan.candidates
        self._may_move = may_move
        self._at = 0
        self._log: list[Attempt] = []

    @property
    def candidate(self) -> Candidate | None:
        """Who is to be dispatched next, or runs; None: nobody is left."""
        return self._candidates[self._at] if self._at < len(self._candidates) else None

    @property
    def is_last(self) -> bool:
        """No candidate comes after this one: it is waited for without a first-event timeout."""
        return not self._may_move or self._at + 1 >= len(self._candidates)

    @property
    def log(self) -> tuple[Attempt, ...]:
        return tuple(self._log)

    @property
    def handoffs(self) -> int:
        return sum(one.outcome is Outcome.RETRYABLE_FAILED for one in self._log)

    def skip(self) -> None:
        """Its probe lease was lost: no attempt."""
        self._at += 1

    def dispatch(self, *, now: float, owner: str | None = None) -> Attempt:
        """The candidate is tried; only now is the failed one before it a retryable failure."""
        candidate = self._candidates[self._at]
        if self._log:
            self._log[-1] = self._log[-1]._replace(outcome=Outcome.RETRYABLE_FAILED)
        self._log.append(Attempt(len(self._log) + 1, candidate, owner, now))
        return self._log[-1]

    def record(
        self,
        verdict: Verdict,
        *,
        now: float,
        visible: bool,
        budget_ok: bool = True,
        status: int | None = None,
    ) -> Handoff | Finish:
        """The running attempt failed."""
        ending = self._ending(verdict, visible=visible, budget_ok=budget_ok)
        attempt = self._end(
            self._log[-1]._replace(
                ended=now,
                outcome=Outcome.FAILED,
                verdict=verdict,
                status=status,
                handed_on=ending is None,
            )
        )
        if ending is not None:
            return Finish(attempt, ending)
        self._at += 1
        return Handoff(attempt)

    def succeed(self, *, now: float, status: int = 200) -> Attempt:
        ordinal, candidate, owner, started, *_ = self._log[-1]
        return self._end(
            Attempt(ordinal, candidate, owner, started, now, Outcome.SUCCEEDED, None, status)
        )

    def cancel(self, *, now: float) -> None:
        """The client left: an attempt that still runs is cancelled, one that failed has failed."""
        if self._log and self._log[-1].outcome is None:
            self._end(self._log[-1]._replace(ended=now, outcome=Outcome.CANCELLED))

    def _ending(self, verdict: Verdict, *, visible: bool, budget_ok: bool) -> Ending | None:
        if visible:
            return Ending.VISIBLE
        if not verdict.move_on:
            return Ending.FINAL
        if not self._may_move:
            return Ending.PINNED
        if self.is_last:
            return Ending.EXHAUSTED
        return Ending.OVER_BUDGET if verdict.budgeted and not budget_ok else None

    def _end(self, attempt: Attempt) -> Attempt:
        self._log[-1] = attempt
        return attempt
