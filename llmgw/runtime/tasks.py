"""Who owns the process's tasks: each has a name, a kept reference and an end at shutdown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

log = logging.getLogger("llmgw")

FIRST_DELAY = 1.0
DELAY_CEILING = 60.0

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


def backoff(*, first: float = FIRST_DELAY, ceiling: float = DELAY_CEILING) -> Iterator[float]:
    """Delays that double from the first to the ceiling, for ever."""
    delay = first
    while True:
        yield delay
        delay = min(delay * 2, ceiling)


class Supervisor:
    """Names the daemon's tasks, restarts its loops, and stops them all."""

    def __init__(self, *, sleep: Sleep = asyncio.sleep, clock: Clock = time.monotonic) -> None:
        self._sleep = sleep
        self._clock = clock
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopped = False

    @property
    def names(self) -> tuple[str, ...]:
        """The running tasks' names, sorted: what a stop would end."""
        return tuple(sorted(task.get_name() for task in self._tasks))

    def spawn(self, name: str, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start one-off work. A failure is logged here, and raised for whoever awaits the task."""
        if self._stopped:
            coro.close()
            raise RuntimeError(f"task {name} came after the stop")
        task = asyncio.create_task(coro, name=name)  # noqa: TID251 - the one place that may
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def loop(self, name: str, body: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run `body` until it returns; where it raises, start it again after a growing pause."""
        return self.spawn(name, self._restart(name, body))

    async def stop(self, grace: float = 5.0) -> None:
        """Cancel every task and wait until all have ended, at most `grace` seconds.

        Work that ending tasks start meanwhile is cancelled too. Nothing can be spawned after.
        """
        deadline = self._clock() + grace
        while pending := self._tasks - {asyncio.current_task()}:
            for task in pending:
                task.cancel()
            left = max(0.0, deadline - self._clock())
            _, stuck = await asyncio.wait(pending, timeout=left)
            if stuck:
                names = sorted(task.get_name() for task in stuck)
                log.error("tasks did not stop", extra={"tasks": names, "grace": grace})
                break
        self._stopped = True

    async def _restart(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        delays = backoff()
        while True:
            began = self._clock()
            try:
                await body()
                return
            except Exception:
                if self._clock() - began > DELAY_CEILING:  # it ran well: this is a new trouble
                    delays = backoff()
                delay = next(delays)
                log.exception("task failed", extra={"task": name, "retry_in": delay})
            await self._sleep(delay)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task failed", exc_info=error, extra={"task": task.get_name()})


async def race(*work: Coroutine[Any, Any, None]) -> None:
    """Run these side by side until one has ended, then end the others. All have ended when this
    returns; what one of them raised is raised."""
    tasks = [asyncio.create_task(one) for one in work]  # noqa: TID251 - the one place that may
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            raise one
