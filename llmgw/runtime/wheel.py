"""One coarse clock for all open streams: a timer for each would cost more than the streams do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from llmgw.core.config import StreamsConfig

FINEST = 0.02
COARSEST = 1.0
TICKS_PER_LIMIT = 10  # a limit of ten seconds is kept to within one


class Ticking(Protocol):
    def tick(self, now: float) -> None:
        """Look whether something is due; monotonic seconds."""


class Wheel:
    """Calls its members once a tick. `now` is as fresh as the last tick."""

    def __init__(self, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.period = period
        self.now = clock()
        self.clock = clock
        self._members: set[Ticking] = set()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Ticking) -> None:
        self._members.add(member)

    def discard(self, member: Ticking) -> None:
        self._members.discard(member)

    def turn(self) -> None:
        """One tick."""
        self.now = self.clock()
        for member in tuple(self._members):
            member.tick(self.now)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.period)
            self.turn()


def period_for(streams: StreamsConfig) -> float:
    """Fine enough for the shortest limit, in seconds."""
    limits = (streams.commit_after, streams.keepalive, streams.idle_timeout, streams.client_stall)
    return min(COARSEST, max(FINEST, min(limits) / TICKS_PER_LIMIT))
