"""What a pool offers: the union of what its assignments advertise and what is configured.

`[[models.available]]` speaks of nodes: a pool of accounts lists what these advertise. A model that
is only named there is still no unknown one. Who advertises a model is asked of its state alone
(`UpstreamState.provenance`): a thousand nodes with three hundred models have as many answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from llmgw.core.config import Account
from llmgw.core.discovery import State
from llmgw.core.fleet import UpstreamState
from llmgw.core.types import AssignmentId

CREATED = 1_704_067_200  # 2024-01-01: upstreams change theirs at every call, this one is stable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of a pool."""

    model: str
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
    states = [state for _, state in assignments]
    names = tuple(configured)
    only_accounts = bool(states) and all(state.is_account for state in states)
    lengths = _smallest(_distinct(state.discovery.max_lens for state in states))
    found = dict.fromkeys(() if only_accounts else names)
    for advertised in _distinct(_advertised(states)):
        found.update(dict.fromkeys(advertised))
    return Catalog(
        entries={name: Entry(name, lengths.get(name)) for name in found},
        configured=frozenset(names),
        only_accounts=only_accounts,
        has_untried=any(state.discovery.state is State.UNTRIED for state in states),
    )


def _advertised(states: Iterable[UpstreamState]) -> Iterator[tuple[str, ...]]:
    for state in states:
        if isinstance(state.upstream, Account):
            yield state.upstream.models
        yield state.discovery.names or ()


def _distinct(lists: Iterable[T]) -> Iterable[T]:
    """Each object once: nodes that list the same share it, and to compare what is in them would
    cost more than it saves."""
    return {id(one): one for one in lists}.values()


def _smallest(tellings: Iterable[tuple[tuple[str, int], ...]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for lengths in tellings:
        for name, length in lengths:
            if length < found.get(name, length + 1):
                found[name] = length
    return found
