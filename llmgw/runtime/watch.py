"""What requests see of the nodes, told to those who own a node's state."""

from __future__ import annotations

from llmgw.core.config import Upstream
from llmgw.core.discovery import Recheck
from llmgw.core.health import Answered
from llmgw.runtime.discoverer import DiscoveryLoop
from llmgw.runtime.monitor import HealthMonitor
from llmgw.runtime.registry import Registry


class NodeWatch:
    """The one place where the inference path touches health and discovery."""

    def __init__(
        self, registry: Registry, monitor: HealthMonitor, discoverer: DiscoveryLoop
    ) -> None:
        self._registry = registry
        self._monitor = monitor
        self._discoverer = discoverer

    def connection_failed(self, upstream: Upstream) -> None:
        self._monitor.recheck(upstream)

    def answered(self, upstream: Upstream, status: int) -> None:
        """Most answers change nothing: there is no streak to end."""
        if status < 500:
            state = self._registry.state(upstream)
            if state is None or state.health.streak == 0:
                return
        self._registry.health_event(upstream, Answered(status, self._registry.clock()))

    async def model_is_gone(self, upstream: Upstream, model: str) -> bool:
        return await self._discoverer.recheck(upstream, model) is Recheck.GONE
