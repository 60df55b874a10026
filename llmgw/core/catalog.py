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
    found = {name: Entry(name) for name in (() if only_accounts else names)}
    for assignment, state in states:
        lengths = dict(state.discovery.max_lens)
        for name in _advertised(state):
            entry = found.get(name) or Entry(name)
            found[name] = _with(entry, assignment, state, lengths.get(name))
    return Catalog(
        entries=found,
        configured=frozenset(names),
        only_accounts=only_accounts,
        has_untried=any(state.discovery.state is State.UNTRIED for _, state in states),
    )


def _advertised(state: UpstreamState) -> Iterable[str]:
    own = state.upstream.models if isinstance(state.upstream, Account) else ()
    return dict.fromkeys((*own, *(state.discovery.names or ())))


def _with(
    entry: Entry, assignment: AssignmentId, state: UpstreamState, length: int | None
) -> Entry:
    lengths = [one for one in (entry.max_model_len, length) if one is not None]
    provenance = state.provenance(entry.model)
    served = (assignment, provenance) if provenance else None
    return Entry(
        entry.model,
        (*entry.assignments, served) if served else entry.assignments,
        min(lengths, default=None),
    )
