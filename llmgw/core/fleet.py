"""One reading of all upstreams: a value that may be kept, for nothing in it changes later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llmgw.core.config import Account, BaseUrl, Upstream
from llmgw.core.discovery import ModelDiscovery
from llmgw.core.health import NodeHealth
from llmgw.core.types import Provenance, UpstreamName

Place = tuple[UpstreamName, BaseUrl]
NEVER_CHECKED = NodeHealth()
UNTRIED = ModelDiscovery()


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine's own metrics said last."""

    running: float
    waiting: float
    cache_use: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class Gpu:
    gpu: str
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    utilization_percent: float | None = None
    temperature_celsius: float | None = None


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """One upstream as this gateway sees it."""

    upstream: Upstream
    health: NodeHealth = NEVER_CHECKED
    discovery: ModelDiscovery = UNTRIED
    load: EngineLoad | None = None
    gpus: tuple[Gpu, ...] = ()

    @property
    def is_account(self) -> bool:
        return isinstance(self.upstream, Account)

    def provenance(self, model: str) -> Provenance | None:
        """Why it is believed to serve the model: its own configuration, or its list."""
        if isinstance(self.upstream, Account) and model in self.upstream.models:
            return Provenance.CONFIGURED
        return self.discovery.provenance(model)


@dataclass(frozen=True, slots=True)
class Fleet:
    """All upstreams by name. `version` grows whenever something that routing looks at changed;
    load is not counted: it moves all the time, and only the order of candidates asks for it.
    """

    version: int
    states: Mapping[UpstreamName, UpstreamState]


def place_of(upstream: Upstream) -> Place:
    """Who an upstream is while it runs: with another URL it is somebody else."""
    return upstream.name, upstream.url
