"""The retry budget of one pool: handoffs may be a fifth of the last ten seconds' requests.

Without one, an overload of a few nodes multiplies itself by the retries that it causes.
"""

from __future__ import annotations

WINDOW = 10  # seconds
SHARE = 0.2
AT_LEAST = 10


class _Window:
    """A count over the last `WINDOW` seconds, kept by the second."""

    __slots__ = ("_buckets", "_second", "_total")

    def __init__(self) -> None:
        self._buckets = [0] * WINDOW
        self._second = 0
        self._total = 0

    def add(self, now: float) -> None:
        self._turn(int(now))
        self._buckets[self._second % WINDOW] += 1
        self._total += 1

    def total(self, now: float) -> int:
        self._turn(int(now))
        return self._total

    def _turn(self, second: int) -> None:
        """Forget what has left the window; a time before the last one counts as the last."""
        if second <= self._second:
            return
        for past in range(self._second + 1, min(second, self._second + WINDOW) + 1):
            self._total -= self._buckets[past % WINDOW]
            self._buckets[past % WINDOW] = 0
        self._second = second


class RetryBudget:
    """Counts by the second; the caller brings a monotonic clock's time."""

    __slots__ = ("_handoffs", "_requests")

    def __init__(self) -> None:
        self._requests = _Window()
        self._handoffs = _Window()

    def request(self, now: float) -> None:
        self._requests.add(now)

    def allows(self, now: float, *, retried: bool = False) -> bool:
        """`retried`: the client itself repeats the request; that halves what it may use."""
        allowance = max(AT_LEAST, SHARE * self._requests.total(now))
        return self._handoffs.total(now) + 1 <= (allowance / 2 if retried else allowance)

    def spend(self, now: float) -> None:
        """A handoff that counts took place."""
        self._handoffs.add(now)
