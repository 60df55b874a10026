"""The event loop's pulse: how late it runs, and the watchdog's sign that it runs at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PERIOD = 0.25


class Heartbeat:
    """Measures the loop's lag each period, and pings at `ping_every` seconds.

    The ping is sent from the loop itself: a loop that is stuck must not look alive.
    """

    def __init__(
        self,
        *,
        observe_lag: Callable[[float], None],
        ping: Callable[[], None],
        ping_every: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._observe_lag = observe_lag
        self._ping = ping
        self._ping_every = ping_every
        self._clock = clock
        self._pinged = float("-inf")

    async def run(self) -> None:
        period = min(PERIOD, self._ping_every or PERIOD)
        while True:
            due = self._clock() + period
            self.beat()
            await asyncio.sleep(period)
            self._observe_lag(max(0.0, self._clock() - due))

    def beat(self) -> None:
        """Ping if the next beat could come too late for it."""
        now = self._clock()
        if self._ping_every is not None and now - self._pinged >= self._ping_every - PERIOD:
            self._pinged = now
            self._ping()
