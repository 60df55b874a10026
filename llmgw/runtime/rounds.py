"""Asking many upstreams again and again, each at its own pace, none because of another."""

from __future__ import annotations

import asyncio
import heapq
import math
import zlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from llmgw.core.config import Upstream
from llmgw.core.fleet import Place, place_of
from llmgw.core.types import UpstreamName
from llmgw.runtime.tasks import Supervisor

GRAIN = 0.05  # seconds; lanes wake together, for each time costs as much as a question or two
GRAINS = 24  # at least, in the shortest interval
BURST = 8  # questions in one step of the event loop: requests must come in between
U = TypeVar("U", bound=Upstream)
Clock = Callable[[], float]


@dataclass(slots=True)
class _Watched(Generic[U]):
    upstream: U
    place: Place
    interval: float
    phase: float  # at which part of the interval its turn comes
    due: float
    task_name: str


class Rounds(Generic[U]):
    """One lane of questions: its own schedule and its own in-flight map.

    The first question to an upstream comes at once, later ones at a moment of the interval that
    its name gives, so that neither nodes nor gateways fall in step. A round never waits for the
    last one: who has not answered yet is not asked again until its next turn.

    `shift` (0 to 1) is a lane's own part of the interval: an upstream is asked by one lane after
    the other, over one connection.
    """

    def __init__(
        self,
        lane: str,
        ask: Callable[[U], Coroutine[Any, Any, None]],
        supervisor: Supervisor,
        *,
        clock: Clock,
        shift: float = 0.0,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._lane = lane
        self._shift = shift
        self._ask = ask
        self._supervisor = supervisor
        self._clock = clock
        self._on_failure = on_failure
        self._watched: dict[Place, _Watched[U]] = {}
        self._due: list[tuple[float, Place]] = []
        self._in_flight: dict[Place, asyncio.Task[None]] = {}
        self._sleeper: asyncio.Future[None] | None = None
        self._grain = GRAIN

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
            place = place_of(upstream)
            known = before.get(place)
            if known is None or known.interval != interval:
                known = self._watch(upstream, place, interval, now, known)
            known.upstream = upstream
            self._watched[place] = known
        shortest = min((one.interval for one in self._watched.values()), default=math.inf)
        self._grain = min(GRAIN, shortest / GRAINS)
        self._due = [(one.due, place) for place, one in self._watched.items()]
        heapq.heapify(self._due)
        self._wake()

    def ask_now(self, upstream: Upstream) -> bool:
        """Ask out of turn; False if it is being asked, or is not watched."""
        watched = self._watched.get(place_of(upstream))
        return watched is not None and self._launch(watched)

    def turn(self) -> float | None:
        """Ask who is due, at most a burst of them; answer in how many seconds the next one is,
        None if nobody is."""
        now = self._clock()
        for _ in range(BURST):
            if not self._due or self._due[0][0] > now:
                break
            watched = self._watched[self._due[0][1]]
            watched.due = next_turn(watched.phase, now, watched.interval)
            heapq.heapreplace(self._due, (watched.due, watched.place))
            self._launch(watched)
        return max(0.0, self._due[0][0] - now) if self._due else None

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            delay = self.turn()
            if delay == 0.0:
                await asyncio.sleep(0)
            else:
                await self._sleep(delay)

    def _watch(
        self, upstream: U, place: Place, interval: float, now: float, known: _Watched[U] | None
    ) -> _Watched[U]:
        phase = phase_of(upstream.name, self._shift)
        due = now if known is None else min(known.due, next_turn(phase, now, interval))
        return _Watched(upstream, place, interval, phase, due, f"{self._lane} {upstream.name}")

    def _launch(self, watched: _Watched[U]) -> bool:
        place = watched.place
        if place in self._in_flight:
            return False
        task = self._supervisor.spawn(watched.task_name, self._ask(watched.upstream))
        self._in_flight[place] = task
        task.add_done_callback(partial(self._answered, place))
        return True

    def _answered(self, place: Place, task: asyncio.Task[None]) -> None:
        del self._in_flight[place]
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()

    async def _sleep(self, delay: float | None) -> None:
        """Until that time, or until somebody else is to be asked."""
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        timer = None
        if delay is not None:
            moment = ((loop.time() + delay) // self._grain + 1) * self._grain
            timer = loop.call_at(moment, self._wake)
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)


def phase_of(name: str, shift: float = 0.0) -> float:
    """Where in the interval the upstream's moment lies, 0 to 1."""
    return (zlib.crc32(name.encode()) / 2**32 + shift) % 1.0


def next_turn(phase: float, now: float, interval: float) -> float:
    """The next moment, half an interval away at the least.

    Moments lie on a grid that only phase and interval fix, so delays never add up.
    """
    first = phase * interval
    turns = (now + interval / 2 - first) // interval + 1
    return turns * interval + first
