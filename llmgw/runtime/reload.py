"""Reloads one after the other: what was asked for while one ran is met by one more.

Signals merge, and a file may change while it is being read. So an ask is never lost and never
answered by a reading that began before it: the last reload always begins after the last ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    SUCCESS = "success"
    ERROR = "error"  # a bad file, or an address that can't be bound: nothing has changed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one reload ended. `began` is on the system's monotonic clock, before the file was
    read: whoever asked earlier than that has the answer to its ask here."""

    number: int
    result: Result
    began: float
    digest: str | None = None
    faults: tuple[str, ...] = ()

    def answers(self, asked: float) -> bool:
        return self.began >= asked


class Reloads:
    """Serialises reloads; `once` is handed the running number of each."""

    def __init__(self, once: Callable[[int], Awaitable[None]]) -> None:
        self._once = once
        self._asked = asyncio.Event()
        self._number = 0

    def ask(self) -> None:
        """Want a reload that begins from now on; may be called from a signal handler."""
        self._asked.set()

    async def run(self) -> None:
        """Serve asks until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()  # before the file is read: an ask from here on is a new one
            self._number += 1
            await self._once(self._number)
