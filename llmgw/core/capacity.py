"""What a full house tells those who come: when it will probably have room."""

from __future__ import annotations

from collections import deque
from math import ceil

LOOK_BACK = 60.0  # seconds
SAMPLES = 64
UNKNOWN = 5  # seconds to wait where nothing has ended lately
AT_MOST = 60


class Pace:
    """How fast requests have ended lately; the caller brings a monotonic clock's time."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=SAMPLES)

    def ended(self, now: float) -> None:
        self._ends.append(now)

    def per_second(self, now: float) -> float:
        recent = [end for end in self._ends if end > now - LOOK_BACK]
        return len(recent) / max(now - recent[0], 1.0) if recent else 0.0


def wait_for_room(ahead: int, per_second: float) -> int:
    """Whole seconds until those ahead and one more will have ended, at the present pace."""
    if per_second <= 0.0:
        return UNKNOWN
    return min(max(ceil((ahead + 1) / per_second), 1), AT_MOST)
