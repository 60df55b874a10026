"""An event loop that runs one callback when told to, and whose time moves only when told to."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

AT_MOST = 100_000  # callbacks: whoever needs more goes in a circle


class SteppedLoop(asyncio.AbstractEventLoop):
    """Keeps asyncio's promises (callbacks in the order of `call_soon`, timers by their time), and
    leaves to the test what happens between any two of them.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.errors: list[dict[str, Any]] = []
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0

    # --- what a test does

    def step(self) -> bool:
        """Run the next callback; False: there is none until time moves."""
        self._wake()
        while self._ready:
            handle = self._ready.popleft()
            if not handle.cancelled():
                asyncio.events._set_running_loop(self)
                try:
                    handle._run()
                finally:
                    asyncio.events._set_running_loop(None)
                return True
        return False

    def run_until_quiet(self) -> None:
        for _ in range(AT_MOST):
            if not self.step():
                return
        raise AssertionError("callbacks go in a circle")

    def advance(self, seconds: float) -> None:
        self.now += seconds

    @property
    def pending_timers(self) -> int:
        return sum(not handle.cancelled() for _, _, handle in self._timers)

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self.now

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to do: a cancelled timer is passed over when its time comes."""

    def _wake(self) -> None:
        while self._timers and self._timers[0][0] <= self.now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)
