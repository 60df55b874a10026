"""What a pool offers: the union of what its assignments advertise and what is configured.

`[[models.available]]` speaks of nodes: a pool of accounts lists what these advertise. A model that
is only named there is still no unknown one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from llmgw.core.config import Account
from llmgw.core.discovery import State
from llmgw.core.fleet import UpstreamState
from llmgw.core.types import AssignmentId, Provenance

CREATED = 1_704_067_200  # 2024-01-01: upstreams change theirs at every call, this one is stable


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of a pool."""

    model: str
    assignments: tuple[tuple[AssignmentId, Provenance], ...] = ()
    max_model_len: int | None = None  # the smallest that any assignment tells


@dataclass(frozen=True, slots=True)
class Catalog:
    """Models in order, without duplicates. Health and circuits never change it."""

    entries: Mapping[str, Entry]
    configured: frozenset[str]  # listed or not
    only_accounts: bool  # and at least one
    has_untried: bool

    def knows(self, model: str) -> bool:
        """Whether a configuration names it or an assignment advertises it."""
        return model in self.entries or model in self.configured

    def visible(self, allows: Callable[[str], bool]) -> tuple[Entry, ...]:
        """What a key with that policy may see."""
        return tuple(entry for entry in self.entries.values() if allows(entry.model))


def build_catalog(
    assignments: Iterable[tuple[AssignmentId, UpstreamState]], *, configured: Iterable[str]
) -> Catalog:
    """`configured`: the names of `[[models.available]]`, then the default. They come first."""
    states = tuple(assignments)
    names = tuple(configured)
    only_accounts = bool(states) and all(state.is_account for _, state in states)
    found = {name: _Growing() for name in (() if only_accounts else names)}
    for assignment, state in states:
        lengths = dict(state.discovery.max_lens)
        for name, provenance in _advertised(state):
            growing = found.get(name)
            if growing is None:
                growing = found[name] = _Growing()
            growing.add((assignment, provenance), lengths.get(name))
    return Catalog(
        entries={name: one.entry(name) for name, one in found.items()},
        configured=frozenset(names),
        only_accounts=only_accounts,
        has_untried=any(state.discovery.state is State.UNTRIED for _, state in states),
    )


class _Growing:
    """An entry that is not whole yet: with a thousand nodes a copy for each would be too many."""

    __slots__ = ("_assignments", "_length")

    def __init__(self) -> None:
        self._assignments: list[tuple[AssignmentId, Provenance]] = []
        self._length: int | None = None

    def add(self, served: tuple[AssignmentId, Provenance], length: int | None) -> None:
        self._assignments.append(served)
        if length is not None and (self._length is None or length < self._length):
            self._length = length

    def entry(self, model: str) -> Entry:
        return Entry(model, tuple(self._assignments), self._length)


def _advertised(state: UpstreamState) -> Iterable[tuple[str, Provenance]]:
    """Each name once, and why it is believed."""
    own = state.upstream.models if isinstance(state.upstream, Account) else ()
    is_known = state.discovery.state is State.KNOWN
    listed = Provenance.OBSERVED if is_known else Provenance.PRESERVED
    found = dict.fromkeys(own, Provenance.CONFIGURED)
    for name in state.discovery.names or ():
        found.setdefault(name, listed)
    return found.items()
