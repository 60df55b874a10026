"""A node's health: what its checks said in a row, and what requests saw of it since.

Times are seconds of one monotonic clock that the caller brings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

SKIP_FOR = 10.0
STREAK_FOR = 10.0
NEVER = float("-inf")


class Status(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Passed:
    """The health endpoint answered 200."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Any other answer, a timeout or no connection."""

    connection: bool  # no connection could be made, or it was lost without an answer


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A request could not reach the node."""

    now: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A request got an answer from the node."""

    status: int
    now: float


HealthEvent = Passed | Failed | ConnectionLost | Answered


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Checks failed in a row, answers >= 500 in a row, and until when requests avoid the node."""

    checked: Status = Status.HEALTHY
    fails: int = 0
    connection_fails: int = 0  # how many of the last failures in a row were of the connection
    is_unreachable: bool = False  # dead, and by failures of the connection alone
    streak: int = 0
    streak_at: float = NEVER  # when the last answer of the streak came
    skip_until: float = NEVER

    def is_skipped(self, now: float) -> bool:
        return now < self.skip_until

    def status(self, now: float, *, overload_threshold: int) -> Status:
        """As routing sees it: a streak of answers >= 500 shows a healthy node as degraded."""
        overloaded = now < self.overloaded_until(overload_threshold)
        if self.checked is Status.HEALTHY and overloaded:
            return Status.DEGRADED
        return self.checked

    def overloaded_until(self, overload_threshold: int) -> float:
        return self.streak_at + STREAK_FOR if self.streak >= overload_threshold else NEVER

    def changes_at(self, now: float) -> float:
        """The next moment at which time alone changes an answer of this value."""
        moments = (self.skip_until, self.streak_at + STREAK_FOR)
        return min((one for one in moments if one > now), default=float("inf"))


def advance(before: NodeHealth, event: HealthEvent, *, fail_threshold: int) -> NodeHealth:
    match event:
        case Passed() if before.fails == 0 and before.checked is Status.HEALTHY:
            return before
        case Passed():
            return replace(
                before, checked=Status.HEALTHY, fails=0, connection_fails=0, is_unreachable=False
            )
        case Failed(connection):
            return _after_failure(before, connection, fail_threshold)
        case ConnectionLost(now):
            return replace(before, skip_until=now + SKIP_FOR)
        case Answered(status, now) if status >= 500:
            return replace(before, streak=before.streak + 1, streak_at=now)
        case Answered():
            return replace(before, streak=0) if before.streak else before
        case _:
            assert_never(event)


def _after_failure(before: NodeHealth, connection: bool, threshold: int) -> NodeHealth:
    """The last `threshold` failures decide whether the node is unreachable, not all of them:
    a node that first answered 503, or hung once, may lose its power afterwards.
    """
    fails = before.fails + 1
    connection_fails = before.connection_fails + 1 if connection else 0
    return replace(
        before,
        checked=_status_after(fails, threshold),
        fails=fails,
        connection_fails=connection_fails,
        is_unreachable=connection_fails >= threshold,
    )


def _status_after(fails: int, threshold: int) -> Status:
    if fails >= threshold:
        return Status.DEAD
    return Status.DEGRADED if fails >= max(1, threshold // 2) else Status.HEALTHY
