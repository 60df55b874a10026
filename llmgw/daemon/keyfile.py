"""The keys file, looked at every second: a new or revoked key counts without a reload.

A keys file that exists closes the gateway, also one that is empty or can't be read. One that was
read and no longer can be, or is gone, leaves the keys that it had until a reload.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from llmgw.config_file import ConfigError, FileMissing, Loaded, load_keys
from llmgw.core.config import KeyConfig
from llmgw.core.policy import KeyRing

log = logging.getLogger("llmgw")

PERIOD = 1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells one state of a file from another, without reading it. The time of its status
    counts, not that of its bytes: a file that could not be read may become readable."""

    ctime_ns: int
    inode: int
    size: int


def mark_of(path: Path) -> Mark | None:
    """None: there is no file to see."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return Mark(seen.st_ctime_ns, seen.st_ino, seen.st_size)


class KeyFileWatch:
    """Calls `changed` when the file is another one than last time; one that is gone is none."""

    def __init__(self, changed: Callable[[], Awaitable[None]]) -> None:
        self._changed = changed
        self._path: Path | None = None
        self._mark: Mark | None = None

    def follow(self, path: Path | None) -> None:
        """Watch this file (None: there is none to watch). One that exists is read once more:
        it may have changed since the configuration was read."""
        self._path, self._mark = path, None

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


class Keys:
    """The key ring of a configuration, kept up with its keys file."""

    def __init__(self, loaded: Loaded, changed: Callable[[KeyRing], None]) -> None:
        self._changed = changed
        self._watch = KeyFileWatch(self._read)
        self.run, self.look = self._watch.run, self._watch.look
        self.take(loaded)

    def take(self, loaded: Loaded) -> None:
        """Begin anew with what a reload has read."""
        self._loaded = loaded
        self._ring = ring_of(loaded)
        self._keys = loaded.keys
        self._open = loaded.is_open
        self._watch.follow(loaded.keys_file)

    @property
    def ring(self) -> KeyRing:
        return self._ring

    async def _read(self) -> None:
        loaded = self._loaded
        config, path = loaded.config, loaded.keys_file
        pools = {pool.name for pool in config.pools}
        own = config.auth.keys if config.auth else ()
        if path is None:
            return
        try:
            found = await asyncio.to_thread(load_keys, path, pools=pools, besides=own)
        except FileMissing:
            return
        except ConfigError as error:
            log.error("keys file refused", extra={"faults": list(map(str, error.faults))})
            keys = () if self._open else self._keys
        else:
            keys = (*own, *found)
        if loaded is self._loaded:  # else a reload came in between, and the file is read again
            self._use(keys)

    def _use(self, keys: tuple[KeyConfig, ...]) -> None:
        if keys == self._keys and not self._open:
            return
        self._keys, self._open = keys, False
        self._ring = KeyRing.from_keys(keys)
        self._changed(self._ring)
        log.info("keys loaded", extra={"keys": len(keys)})


def ring_of(loaded: Loaded) -> KeyRing:
    return KeyRing.open() if loaded.is_open else KeyRing.from_keys(loaded.keys)
