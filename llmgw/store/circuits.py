"""Circuits and demotions that all gateways share: each change is one compare-and-set."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from llmgw.core.circuit import Circuit, CircuitEvent, CircuitKey, DemotionKey
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes
from llmgw.store.reader import Reader
from llmgw.store.writer import Writer


@dataclass(frozen=True, slots=True)
class View:
    """All circuits that are not blank and all demotions that last, as of one moment.

    A view whose `cursor` is smaller than that of a later own `Written` is to be dropped.
    """

    cursor: int
    circuits: Mapping[CircuitKey, Circuit]
    demotions: Mapping[DemotionKey, float]  # until


@dataclass(frozen=True, slots=True)
class Written:
    """What a change left behind: for each of its keys the row as it is now (blank: no row)."""

    cursor: int
    circuits: Mapping[CircuitKey, Circuit]
    demotions: Mapping[DemotionKey, float | None]


class Circuits:
    def __init__(self, writer: Writer, reader: Reader) -> None: ...

    def apply(
        self, changes: Changes, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]:
        """All of a settlement's changes in one transaction, in order."""

    def transition(
        self, key: CircuitKey, event: CircuitEvent, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]: ...

    async def lease(
        self, key: CircuitKey, owner: str, *, now: float, config: CircuitsConfig
    ) -> bool:
        """Take a probe slot. Whoever is cancelled here sends `Neutral(owner)`: it comes after."""

    async def load(self, *, now: float) -> View: ...

    async def changed_since(self, cursor: int, *, now: float) -> View | None:
        """None: no gateway has changed anything (one query of one row)."""

    def merge(
        self, local: Mapping[CircuitKey, Circuit], base: Mapping[CircuitKey, int]
    ) -> asyncio.Future[Written]:
        """After an outage: write each local circuit where the row still has the version that the
        local one began from (`base`; 0: there was no row); elsewhere the row wins."""
