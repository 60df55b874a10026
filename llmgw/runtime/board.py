"""Circuits, demotions and drains as every request sees them: a view in memory of the rows that
all gateways share.

Own changes are in the view at once and on their way to the database; those of other gateways
come with the next look (`Board.follow`). While the database is away the view is all there is, and
what changed meanwhile is merged when it is back.
"""

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
    Failed,
    Leased,
    Neutral,
    advance,
)
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, KeyId, PoolName, UpstreamName
from llmgw.observe.metrics import CIRCUIT_TRANSITIONS, child

Place = tuple[PoolName, KeyId | None, str]
_NOBODY: frozenset[AssignmentId] = frozenset()


class Board:
    """Holds only what is not blank: circuits that are not quite closed, demotions that last.

    `version` grows with every change, so that whoever keeps a decision knows when it is stale.
    """

    def __init__(self, config: CircuitsConfig, *, wall: Callable[[], float] = time.time) -> None:
        self.config = config
        self.version = 0
        self.wall = wall
        self._circuits: dict[CircuitKey, Circuit] = {}
        self._demoted: dict[Place, dict[AssignmentId, float]] = {}
        self._draining: frozenset[UpstreamName] = frozenset()

    @property
    def is_blank(self) -> bool:
        return not self._circuits and not self._demoted

    def view(self) -> Mapping[CircuitKey, Circuit]:
        return MappingProxyType(self._circuits)

    def circuit(self, key: CircuitKey) -> Circuit:
        return self._circuits.get(key, CLOSED)

    def demoted(self, pool: PoolName, key: KeyId | None, model: str) -> frozenset[AssignmentId]:
        """The assignments that this key's requests for the model should rather not try first."""
        found = self._demoted.get((pool, key, model))
        if not found:
            return _NOBODY
        now = self.wall()
        return frozenset(one for one, until in found.items() if until > now)

    def lease(self, key: CircuitKey, owner: str) -> bool:
        """Take a probe slot for an attempt that is about to be dispatched; False: it is taken."""
        return self.advance(key, Leased(owner)).holds(owner)

    def apply(self, changes: Changes) -> Changes:
        """Change the view; what of it changes a row comes back, and is to be written."""
        circuits = tuple(one for one in changes.circuits if self._changes(*one))
        for key, event in circuits:
            self.advance(key, event)
        demotions = tuple(one for one in changes.demotions if self._demote(one))
        return Changes(circuits, demotions)

    def advance(self, key: CircuitKey, event: CircuitEvent) -> Circuit:
        before = self.circuit(key)
        after = advance(before, event, now=self.wall(), config=self.config)
        if after is not before:
            self.put(key, after)
            _count(key, before.state, after.state)
        return after

    def put(self, key: CircuitKey, circuit: Circuit) -> None:
        """Show this circuit, whatever was shown before."""
        if circuit.is_blank:
            changed = self._circuits.pop(key, None) is not None
        else:
            changed = self._circuits.get(key) != circuit
            self._circuits[key] = circuit
        self.version += changed

    def demote(self, key: DemotionKey, until: float | None) -> bool:
        """Move back until then, or no longer (None); False where that was so before."""
        place, assignment = (key.pool, key.key, key.model), key.assignment
        if until is not None:
            self._demoted.setdefault(place, {})[assignment] = until
            return True
        found = self._demoted.get(place, {})
        ended = found.pop(assignment, None) is not None
        if ended and not found:
            del self._demoted[place]
        return ended

    def demotions(self) -> dict[DemotionKey, float]:
        """All of them, with their ends."""
        return {
            DemotionKey(*place, assignment): until
            for place, found in self._demoted.items()
            for assignment, until in found.items()
        }

    def draining(self) -> frozenset[UpstreamName]:
        """The nodes that an operator has taken out of all new work."""
        return self._draining

    def drain(self, nodes: Iterable[UpstreamName]) -> None:
        """These, and no others."""
        drained = frozenset(nodes)
        self.version += drained != self._draining
        self._draining = drained

    def retain(self, assignments: Iterable[AssignmentId]) -> None:
        """After a reload: forget assignments that are gone."""
        alive = set(assignments)
        gone = [key for key in self._circuits if key.assignment not in alive]
        for key in gone:
            del self._circuits[key]
        self.version += bool(gone)

    def expire(self) -> None:
        """Drop demotions whose time is over."""
        now = self.wall()
        for key, until in self.demotions().items():
            if until <= now:
                self.demote(key, None)

    def _changes(self, key: CircuitKey, event: CircuitEvent) -> bool:
        """Whether there may be a row that it changes: most successes meet none.

        A slot is always settled: another gateway's change may have hidden it from this view.
        """
        match event:
            case Failed():
                return True
            case Neutral(owner):
                return owner is not None
            case _:
                return key in self._circuits or getattr(event, "owner", None) is not None

    def _demote(self, demotion: Demote) -> bool:
        seconds = demotion.for_seconds
        until = None if seconds is None else self.wall() + seconds
        return self.demote(demotion.key, until)


def _count(key: CircuitKey, before: CircuitState, after: CircuitState) -> None:
    if after is not before:
        child(CIRCUIT_TRANSITIONS, key.assignment, after).inc()
