"""The board kept in step with the database: own changes out, other gateways' changes in.

Whoever changes something is never held up longer than it asks for: a change is handed over, and
made whether anybody waits or not.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from functools import partial

from llmgw.core.circuit import Circuit, CircuitKey, DemotionKey, Neutral
from llmgw.core.settle import NOTHING, Changes, Demote
from llmgw.runtime.board import Board
from llmgw.runtime.ports import CircuitStore, DrainStore, StoreError, View, Written

LOOK_EVERY = 0.5  # seconds: another gateway's change counts within one
LEASE_WITHIN = 1.0  # a slot that the database does not grant soon is somebody else's
LATEST_LOOK = 5.0  # a look that hangs must not be the last one


class SharedBoard:
    """Takes changes to the view and to the store, and the store's rows into the view."""

    def __init__(self, board: Board, store: CircuitStore, drains: DrainStore) -> None:
        self._board = board
        self._store = store
        self._drains = drains
        self._seen = -1  # the cursor of the view that was taken last
        self._written = -1  # of the last own change
        self._pending: Counter[CircuitKey] = Counter()  # own changes on their way
        self._known: dict[CircuitKey, int] = {}  # versions of rows, as last seen
        self._unsaved: set[CircuitKey] = set()  # changed while the database was away
        self._unsaved_demotions: set[DemotionKey] = set()
        self._look = asyncio.Event()

    @property
    def is_blank(self) -> bool:
        """No circuit and no demotion that a success could end is known here."""
        return self._board.is_blank

    def apply(self, changes: Changes) -> asyncio.Future[Written] | None:
        """In the view at once; None where there is nothing to write."""
        changes = self._board.apply(changes)
        if changes == NOTHING:
            return None
        keys = {key for key, _ in changes.circuits}
        self._pending.update(keys)
        board = self._board
        future = self._store.apply(changes, now=board.wall(), config=board.config)
        future.add_done_callback(partial(self._applied, changes))
        return future

    async def lease(self, key: CircuitKey, owner: str) -> bool:
        """Take a probe slot of all gateways; False: somebody else has it."""
        if not self._board.lease(key, owner):
            return False
        self._pending[key] += 1
        try:
            taken = await self._ask_for(key, owner)
        except StoreError:  # while the database is away each gateway probes for itself
            self._unsaved.add(key)
            return True
        except BaseException:
            self._give_back(key, owner)
            raise
        finally:
            self._settled(key)
        if taken is None:  # late: whether it was granted is unknown here
            self._give_back(key, owner)
        if not taken:  # the view goes on showing the slot as taken until it has the row
            self.forget()
            self._look.set()
        return taken is True

    def forget(self) -> None:
        """Read all rows again: the view has dropped some."""
        self._seen = -1

    async def follow(self) -> None:
        """A loop: look for changes of others, and bring the database what it has missed."""
        while True:
            await self.look()
            self._board.expire()
            self._look.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._look.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        try:
            async with asyncio.timeout(LATEST_LOOK):
                await self._save()
                found = await self._store.changed_since(self._seen, now=self._board.wall())
                self._board.drain(await self._drains.current(now=self._board.wall()))
        except (StoreError, TimeoutError):
            return  # the writer tells of outages
        if found is not None and found.cursor >= self._written:
            self._take(found)

    async def _ask_for(self, key: CircuitKey, owner: str) -> bool | None:
        """None: the answer is late."""
        board = self._board
        try:
            async with asyncio.timeout(LEASE_WITHIN):
                return await self._store.lease(key, owner, now=board.wall(), config=board.config)
        except TimeoutError:
            return None

    def _give_back(self, key: CircuitKey, owner: str) -> None:
        self.apply(Changes(circuits=((key, Neutral(owner)),)))

    async def _save(self) -> None:
        """After an outage: rows that no other gateway has changed since take what is here."""
        if not self._unsaved and not self._unsaved_demotions:
            return
        keys, demotions = self._unsaved, self._unsaved_demotions
        local = {key: self._board.circuit(key) for key in keys}
        written = await self._store.merge(local, {key: self._known.get(key, 0) for key in keys})
        self._unsaved = self._unsaved - keys
        self._adopt(written)
        self._unsaved_demotions = set()
        self._apply_again(demotions)

    def _apply_again(self, keys: Iterable[DemotionKey]) -> None:
        now, lasting = self._board.wall(), self._board.demotions()
        ends = ((key, lasting.get(key)) for key in keys)
        again = (Demote(key, None if until is None else until - now) for key, until in ends)
        self.apply(Changes(demotions=tuple(again)))

    def _applied(self, changes: Changes, future: asyncio.Future[Written]) -> None:
        for key in {key for key, _ in changes.circuits}:
            self._settled(key)
        if future.cancelled() or future.exception() is not None:
            self._unsaved.update(key for key, _ in changes.circuits)
            self._unsaved_demotions.update(one.key for one in changes.demotions)
        else:
            self._adopt(future.result())

    def _adopt(self, written: Written) -> None:
        self._written = max(self._written, written.cursor)
        for key, circuit in written.circuits.items():
            self._show(key, circuit)

    def _take(self, view: View) -> None:
        self._seen = view.cursor
        self._known = {key: circuit.version for key, circuit in view.circuits.items()}
        for key in (*self._board.view(), *view.circuits):
            if key not in view.circuits:
                self._show(key, Circuit())
            else:
                self._show(key, view.circuits[key])
        self._take_demotions(view)

    def _take_demotions(self, view: View) -> None:
        if self._unsaved_demotions:
            return
        gone = self._board.demotions().keys() - view.demotions.keys()
        for key in gone:
            self._board.demote(key, None)
        for key, until in view.demotions.items():
            self._board.demote(key, until)

    def _show(self, key: CircuitKey, circuit: Circuit) -> None:
        """The row as it is, unless an own change is on its way or waits for the database."""
        self._known[key] = circuit.version
        if key not in self._pending and key not in self._unsaved:
            self._board.put(key, circuit)

    def _settled(self, key: CircuitKey) -> None:
        self._pending[key] -= 1
        if self._pending[key] <= 0:
            del self._pending[key]
