"""Asking many upstreams again and again, each at its own pace, none because of another."""

from __future__ import annotations

import asyncio
import heapq
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from llmgw.core.config import Upstream
from llmgw.core.fleet import Place, place_of
from llmgw.core.types import UpstreamName
from llmgw.runtime.tasks import Supervisor

GRAIN = 0.01  # with 1,000 upstreams more than one falls due in that time
U = TypeVar("U", bound=Upstream)
Clock = Callable[[], float]


@dataclass(slots=True)
class _Watched(Generic[U]):
    upstream: U
    interval: float
    due: float


class Rounds(Generic[U]):
    """One lane of questions: its own schedule and its own in-flight map.

    The first question to an upstream comes at once, later ones at a moment of the interval that
    its name gives, so that neither nodes nor gateways fall in step. A round never waits for the
    last one: who has not answered yet is not asked again until its next turn.
    """

    def __init__(
        self,
        lane: str,
        ask: Callable[[U], Coroutine[Any, Any, None]],
        supervisor: Supervisor,
        *,
        clock: Clock,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._lane = lane
        self._ask = ask
        self._supervisor = supervisor
        self._clock = clock
        self._on_failure = on_failure
        self._watched: dict[Place, _Watched[U]] = {}
        self._due: list[tuple[float, Place]] = []
        self._in_flight: dict[Place, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @property
    def in_flight(self) -> frozenset[UpstreamName]:
        return frozenset(name for name, _ in self._in_flight)

    def watch(self, upstreams: Iterable[tuple[U, float]]) -> None:
        """Ask these from now on, each at its interval; those that were asked keep their turn.

        A question under way is left to end: its answer lands where the caller finds it still
        belongs.
        """
        now = self._clock()
        before = self._watched
        self._watched = {}
        for upstream, interval in upstreams:
            known = before.get(place_of(upstream))
            if known is None:
                due = now
            elif known.interval == interval:
                due = known.due
            else:
                due = min(known.due, next_turn(upstream.name, now, interval))
            self._watched[place_of(upstream)] = _Watched(upstream, interval, due)
        self._due = [(one.due, place) for place, one in self._watched.items()]
        heapq.heapify(self._due)
        self._changed.set()

    def ask_now(self, upstream: Upstream) -> bool:
        """Ask out of turn; False if it is being asked, or is not watched."""
        watched = self._watched.get(place_of(upstream))
        return watched is not None and self._launch(watched.upstream)

    def turn(self) -> float | None:
        """Ask whoever is due; answer in how many seconds the next one is, None if nobody is."""
        now = self._clock()
        while self._due and self._due[0][0] <= now:
            _, place = heapq.heappop(self._due)
            watched = self._watched[place]
            watched.due = next_turn(place[0], now, watched.interval)
            heapq.heappush(self._due, (watched.due, place))
            self._launch(watched.upstream)
        return self._due[0][0] - now if self._due else None

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            self._changed.clear()
            delay = self.turn()
            await _first_of(self._changed.wait(), delay)

    def _launch(self, upstream: U) -> bool:
        place = place_of(upstream)
        if place in self._in_flight:
            return False
        task = self._supervisor.spawn(f"{self._lane} {upstream.name}", self._ask(upstream))
        self._in_flight[place] = task
        task.add_done_callback(lambda ended: self._answered(place, ended))
        return True

    def _answered(self, place: Place, task: asyncio.Task[None]) -> None:
        del self._in_flight[place]
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()


def next_turn(name: str, now: float, interval: float) -> float:
    """The upstream's next moment, half an interval away at the least.

    Moments lie on a grid that only the name and the interval fix, so delays never add up.
    """
    phase = zlib.crc32(name.encode()) / 2**32 * interval
    earliest = now + interval / 2
    turns = (earliest - phase) // interval + 1
    return turns * interval + phase


async def _first_of(change: Awaitable[object], delay: float | None) -> None:
    limit = None if delay is None else max(GRAIN, delay)
    try:
        async with asyncio.timeout(limit):
            await change
    except TimeoutError:
        return
