"""What a pool offers: the union of what its assignments advertise and what is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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
    has_nodes: bool
    has_untried: bool

    def knows(self, model: str) -> bool:
        return model in self.entries

    def visible(self, allows: Callable[[str], bool]) -> tuple[Entry, ...]:
        """What a key with that policy may see."""
        return tuple(entry for entry in self.entries.values() if allows(entry.model))


def build_catalog(
    assignments: Iterable[tuple[AssignmentId, UpstreamState]], *, configured: Iterable[str]
) -> Catalog:
    """`configured`: the names of `[[models.available]]`, then the default."""
    raise NotImplementedError
