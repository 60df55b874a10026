"""The lane of the engines' own metrics: what it learns helps to order, and decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from llmgw.core.config import Node
from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.runtime.registry import Registry
from llmgw.runtime.rounds import Rounds
from llmgw.runtime.tasks import Supervisor


class ScrapeLoad(Protocol):
    def __call__(self, node: Node, /) -> Awaitable[EngineLoad | None]: ...


class ScrapeGpus(Protocol):
    def __call__(self, node: Node, /) -> Awaitable[tuple[Gpu, ...]]: ...


class LoadScraper:
    """Reads every node's metrics at `gateway.health_interval`, once at a time."""

    def __init__(
        self,
        registry: Registry,
        supervisor: Supervisor,
        scrape_load: ScrapeLoad,
        scrape_gpus: ScrapeGpus,
    ) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._scrape_load = scrape_load
        self._scrape_gpus = scrape_gpus
        self._rounds = Rounds[Node](
            "scrape of", self._scrape, supervisor, clock=registry.clock, shift=2 / 3
        )

    def start(self) -> None:
        self.reload()
        self._supervisor.loop("scrape", self._rounds.run)

    def reload(self) -> None:
        config = self._registry.config
        self._rounds.watch((node, config.gateway.health_interval) for node in config.nodes)

    async def _scrape(self, node: Node) -> None:
        self._registry.set_load(node, await self._scrape_load(node))
        has_exporter = node.metrics_port is not None
        self._registry.set_gpus(node, await self._scrape_gpus(node) if has_exporter else ())
