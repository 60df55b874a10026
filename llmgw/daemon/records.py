"""The database's side of the process: what runs for it from start to stop, and how it is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from llmgw.core.config import DatabaseConfig
from llmgw.observe.metrics import DATABASE_SPOOLED, DATABASE_UP
from llmgw.runtime.ports import Stores
from llmgw.runtime.tasks import Supervisor
from llmgw.store.errors import StoreError
from llmgw.store.gateways import BEAT_EVERY
from llmgw.store.jobs import DatabaseState
from llmgw.store.store import Store

log = logging.getLogger("llmgw")

READERS = 2  # one look-up that hangs must not hold up the others
START_AGAIN = 1.0
STATE_EVERY = 0.5
SWEEP_EVERY = 3600.0


class Records:
    """Owns the store's loops. `fresh`: no gateway of this place is still at work, so whatever
    one left open is closed."""

    def __init__(
        self,
        store: Store,
        supervisor: Supervisor,
        *,
        fresh: bool = True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.keep = DatabaseConfig().keep  # set with each configuration
        self._supervisor = supervisor
        self._fresh = fresh
        self._wall = wall
        self._shown = DatabaseState.OK

    @property
    def stores(self) -> Stores:
        store = self.store
        return Stores(store.circuits, store.requests, store.pins, store.drains)

    @property
    def state(self) -> DatabaseState:
        return self.store.writer.status.state

    def start(self) -> None:
        DATABASE_UP.set_function(lambda: self.state is DatabaseState.OK)
        DATABASE_SPOOLED.set_function(lambda: self.store.writer.status.spooled)
        self._supervisor.loop("database writer", self.store.writer.run)
        for _ in range(READERS):
            self._supervisor.loop("database reader", self.store.reader.run)
        self._supervisor.loop("database state", self._watch)
        self._supervisor.loop("gateway rows", self._beat)
        self._supervisor.loop("retention", self._sweep)

    async def stop(self) -> None:
        """After the last request, and after the loops: what waits is written or spooled."""
        self.store.gateways.stop()
        await self.store.close()

    async def _beat(self) -> None:
        gateways, is_known = self.store.gateways, False
        while True:
            now = self._wall()
            try:
                if is_known:
                    closed = await gateways.beat(now=now)
                else:
                    closed = await gateways.start(now=now, fresh=self._fresh)
                is_known = True
            except StoreError:
                closed = 0  # the state tells of it
            if closed:
                log.warning("abandoned requests closed", extra={"requests": closed})
            await asyncio.sleep(BEAT_EVERY if is_known else START_AGAIN)

    async def _watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(STATE_EVERY)

    def look(self) -> None:
        """One log line for each change of how the database is."""
        status = self.store.writer.status
        if status.state is self._shown:
            return
        self._shown = status.state
        fields = {"spooled": status.spooled, "lost": status.lost, "error": status.error}
        match status.state:
            case DatabaseState.OK:
                log.info("database answers again", extra={"lost": status.lost})
            case DatabaseState.SPOOLING:
                log.error("database does not answer", extra=fields)
            case DatabaseState.DOWN:
                log.error("database does not answer and rows are lost", extra=fields)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            try:
                gone = await self.store.retention.sweep(now=self._wall(), keep=self.keep)
            except StoreError:
                continue
            log.info("old rows deleted", extra={"rows": gone})
