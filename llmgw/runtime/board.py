"""Circuits and demotions as every request sees them: a view in memory, changed only here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from llmgw.core.circuit import (
    CLOSED,
    Circuit,
    CircuitEvent,
    CircuitKey,
    CircuitState,
    DemotionKey,
    Leased,
    advance,
)
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, KeyId, PoolName
from llmgw.observe.metrics import CIRCUIT_TRANSITIONS, child

Demoted = dict[AssignmentId, float]
_NOBODY: frozenset[AssignmentId] = frozenset()


class Board:
    """Holds only what is not blank: circuits that are not quite closed, demotions that last.

    `version` grows with every change, so that whoever keeps a decision knows when it is stale.
    """

    def __init__(self, config: CircuitsConfig, *, wall: Callable[[], float] = time.time) -> None:
        self.config = config
        self.version = 0
        self._wall = wall
        self._circuits: dict[CircuitKey, Circuit] = {}
        self._demoted: dict[tuple[PoolName, KeyId | None, str], Demoted] = {}

    def view(self) -> Mapping[CircuitKey, Circuit]:
        return MappingProxyType(self._circuits)

    def circuit(self, key: CircuitKey) -> Circuit:
        return self._circuits.get(key, CLOSED)

    def lease(self, key: CircuitKey, owner: str) -> bool:
        """Take a probe slot for an attempt that is about to be dispatched; False: it is taken."""
        return self._advance(key, Leased(owner)).holds(owner)

    def apply(self, changes: Changes) -> None:
        for key, event in changes.circuits:
            self._advance(key, event)
        for demotion in changes.demotions:
            self._demote(demotion)

    def demoted(self, pool: PoolName, key: KeyId | None, model: str) -> frozenset[AssignmentId]:
        """The assignments that this key's requests for the model should rather not try first."""
        found = self._demoted.get((pool, key, model))
        if not found:
            return _NOBODY
        now = self._wall()
        return frozenset(one for one, until in found.items() if until > now)

    def retain(self, assignments: Iterable[AssignmentId]) -> None:
        """After a reload: forget assignments that are gone."""
        alive = set(assignments)
        gone = [key for key in self._circuits if key.assignment not in alive]
        for key in gone:
            del self._circuits[key]
        self.version += bool(gone)

    def expire(self) -> None:
        """Drop demotions whose time is over."""
        now = self._wall()
        for place, found in tuple(self._demoted.items()):
            left = {one: until for one, until in found.items() if until > now}
            if left:
                self._demoted[place] = left
            else:
                del self._demoted[place]

    def _advance(self, key: CircuitKey, event: CircuitEvent) -> Circuit:
        before = self.circuit(key)
        after = advance(before, event, now=self._wall(), config=self.config)
        if after is before:
            return before
        self.version += 1
        if after.is_blank:
            self._circuits.pop(key, None)
        else:
            self._circuits[key] = after
        _count(key, before.state, after.state)
        return after

    def _demote(self, demotion: Demote) -> None:
        place, assignment = _place(demotion.key)
        if demotion.for_seconds is not None:
            until = self._wall() + demotion.for_seconds
            self._demoted.setdefault(place, {})[assignment] = until
        elif (found := self._demoted.get(place)) and found.pop(assignment, None) and not found:
            del self._demoted[place]


def _place(key: DemotionKey) -> tuple[tuple[PoolName, KeyId | None, str], AssignmentId]:
    return (key.pool, key.key, key.model), key.assignment


def _count(key: CircuitKey, before: CircuitState, after: CircuitState) -> None:
    if after is not before:
        child(CIRCUIT_TRANSITIONS, key.assignment, after).inc()
