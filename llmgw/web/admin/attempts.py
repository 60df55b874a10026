"""How often somebody may try to sign in: a few failures, then a wait."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

WINDOW: Final = 60.0  # seconds
OF_NAME: Final = 5  # failures from one address for one name
OF_ADDRESS: Final = 20
OF_ALL: Final = 300  # whatever the address: each costs a tenth of a second of a processor
MOST_KEPT: Final = 10_000

Key = tuple[str, ...]


class Attempts:
    """Counts an attempt when it begins, so that many at once are no way around the limit."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[Key, deque[float]] = OrderedDict()

    def begin(self, address: str, name: str) -> float | None:
        """Seconds to wait; None: go on, and it counts as failed until `succeeded`."""
        limits = _limits(address, name)
        now = self._clock()
        waits = [self._wait(key, most, now) for key, most in limits.items()]
        if max(waits) > 0:
            return max(waits)
        for key in limits:
            self._note(key, now)
        return None

    def succeeded(self, address: str, name: str) -> None:
        """Forget what counted against this name from there, and this attempt elsewhere."""
        for key in _limits(address, name):
            if failures := self._failures.get(key):
                failures.pop()
        self._failures.pop(("name", address, name), None)

    def _wait(self, key: Key, most: int, now: float) -> float:
        failures = self._failures.get(key, ())
        recent = [one for one in failures if now - one < WINDOW]
        return recent[-most] + WINDOW - now if len(recent) >= most else 0.0

    def _note(self, key: Key, now: float) -> None:
        failures = self._failures.setdefault(key, deque(maxlen=OF_ALL))
        failures.append(now)
        self._failures.move_to_end(key)
        while len(self._failures) > MOST_KEPT:
            self._failures.popitem(last=False)


def _limits(address: str, name: str) -> dict[Key, int]:
    return {
        ("all",): OF_ALL,
        ("address", address): OF_ADDRESS,
        ("name", address, name[:200]): OF_NAME,
    }
