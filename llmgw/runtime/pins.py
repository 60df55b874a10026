"""Which assignment an id lives at: remembered here for what was seen lately, else looked up.

Nobody waits long for a pin to be written. One that is late stays in memory, and the writer puts
it into the database or, while that is away, on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llmgw.core.pins import PinKind, Resource, choose_pin, id_of_answer, id_of_stream
from llmgw.core.types import AssignmentId, PoolName
from llmgw.runtime.ports import PinStore, StoreError

log = logging.getLogger("llmgw")

WRITTEN_WITHIN = 0.25  # seconds that an answer may wait for its pin
FOUND_WITHIN = 1.0  # and a request for the look-up of an id
PINNED_FOR = 86400.0
MOST_KEPT = 65536

Key = tuple[PoolName, Resource]


@dataclass(frozen=True, slots=True)
class _Pin:
    assignment: AssignmentId
    until: float


class Pins:
    """Scoped to a pool: an id of another pool is unknown."""

    def __init__(self, store: PinStore, *, wall: Callable[[], float] = time.time) -> None:
        self._store = store
        self._wall = wall
        self._kept: OrderedDict[Key, _Pin] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    async def choose(self, pool: PoolName, resources: Sequence[Resource]) -> AssignmentId | None:
        """Where a request that refers to these has to go; None: anywhere. Raises `Conflict`."""
        return choose_pin([await self.find(pool, one) for one in resources])

    async def find(self, pool: PoolName, resource: Resource) -> AssignmentId | None:
        """None: the pool has not seen it. While the database is away only memory can tell."""
        now = self._wall()
        kept = self._kept.get((pool, resource))
        if kept is not None and kept.until > now:
            return kept.assignment
        try:
            async with asyncio.timeout(FOUND_WITHIN):
                found = await self._store.find(pool, resource.kind, resource.id, now=now)
        except (StoreError, TimeoutError):
            log.warning("pin not looked up", extra={"pool": pool, "kind": resource.kind})
            return None
        if found is not None:
            self._remember((pool, resource), found)
        return found

    async def keep(self, pool: PoolName, resource: Resource, assignment: AssignmentId) -> None:
        """Remember at once, and wait for the database a moment."""
        await asyncio.wait((self.note(pool, resource, assignment),), timeout=WRITTEN_WITHIN)

    def note(
        self, pool: PoolName, resource: Resource, assignment: AssignmentId
    ) -> asyncio.Future[None]:
        """The same without waiting."""
        self._remember((pool, resource), assignment)
        return self._store.put(pool, resource.kind, resource.id, assignment, now=self._wall())

    def _remember(self, key: Key, assignment: AssignmentId) -> None:
        self._kept[key] = _Pin(assignment, self._wall() + PINNED_FOR)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Keeper:
    """Pins what one request makes at the upstream that serves it."""

    pins: Pins
    pool: PoolName
    kind: PinKind

    async def answered(self, assignment: AssignmentId, body: bytes) -> None:
        """Before the status line: who has the id may use it at once, at another gateway too."""
        found = id_of_answer(body)
        if found is not None:
            await self.pins.keep(self.pool, Resource(self.kind, found), assignment)

    def streaming(self, assignment: AssignmentId, start: bytes) -> None:
        """`start`: the first events. The pin is written long before the stream ends."""
        found = id_of_stream(start)
        if found is not None:
            self.pins.note(self.pool, Resource(self.kind, found), assignment)
