"""Upstreams that are asked and answer when the test says so, or never."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import Any

from llmgw.core.config import Upstream


async def settle(rounds: int = 20) -> None:
    """Let every task that can go on do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)


class Asked:
    """Stands in for a probe, a listing or a scrape."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.came = asyncio.Event()  # a question came
        self.upstreams: list[Upstream] = []
        self.limits: list[dict[str, Any]] = []
        self._waiting: defaultdict[str, deque[asyncio.Future[Any]]] = defaultdict(deque)

    async def __call__(self, upstream: Upstream, /, **limits: Any) -> Any:
        self.calls.append(upstream.name)
        self.came.set()
        self.upstreams.append(upstream)
        self.limits.append(limits)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[upstream.name].append(future)
        try:
            return await future
        finally:
            if future in self._waiting[upstream.name]:
                self._waiting[upstream.name].remove(future)

    def is_waiting(self, name: str) -> bool:
        return bool(self._waiting[name])

    async def answer(self, name: str, value: Any) -> None:
        """Answer the oldest open question to that upstream; an exception is raised there."""
        future = self._waiting[name].popleft()
        if isinstance(value, BaseException):
            future.set_exception(value)
        else:
            future.set_result(value)
        await settle()
