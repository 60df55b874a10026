"""The keys file, looked at every second: a new or revoked key counts without a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

PERIOD = 1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells one writing of a file from another, without reading it."""

    mtime_ns: int
    inode: int
    size: int


def mark_of(path: Path) -> Mark | None:
    """None: there is no file to see."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return Mark(seen.st_mtime_ns, seen.st_ino, seen.st_size)


class KeyFileWatch:
    """Calls `changed` when the file is another one than last time; one that is gone is none."""

    def __init__(self, changed: Callable[[], Awaitable[None]]) -> None:
        self._changed = changed
        self._path: Path | None = None
        self._mark: Mark | None = None

    def follow(self, path: Path | None, mark: Mark | None) -> None:
        """Watch this file, whose content as of `mark` is known. None: there is none to watch."""
        self._path, self._mark = path, mark

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            await self.look()

    async def look(self) -> None:
        if self._path is None:
            return
        mark = mark_of(self._path)
        if mark is not None and mark != self._mark:
            self._mark = mark
            await self._changed()
