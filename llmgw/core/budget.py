"""The retry budget of one pool: handoffs may be a fifth of the last ten seconds' requests."""

from __future__ import annotations


class RetryBudget:
    """Counts by the second; the caller brings a monotonic clock's time."""

    def request(self, now: float) -> None:
        raise NotImplementedError

    def allows(self, now: float, *, retried: bool = False) -> bool:
        """`retried`: the client itself repeats the request; that halves what it may use."""
        raise NotImplementedError

    def spend(self, now: float) -> None:
        """A budgeted handoff took place."""
        raise NotImplementedError
