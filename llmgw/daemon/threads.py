"""How threads share the interpreter: those that compute must not hold the event loop up."""

from __future__ import annotations

import sys

# A thread gives the interpreter up after so many seconds when another one wants it. The loop
# wants it after each wait and before each read: with Python's 5 ms, a page of metrics that is
# written beside it would make every event that much late, and a burst of them many times that.
SWITCH_EVERY = 0.0002


def tune_threads() -> None:
    sys.setswitchinterval(SWITCH_EVERY)
