"""The gauges that show the fleet: counted when they are read, for time alone changes them."""

from __future__ import annotations

from functools import partial

from llmgw.core.config import Node
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import Status
from llmgw.core.types import UpstreamName
from llmgw.observe.metrics import (
    NODE_MODELS_OK,
    NODE_STATUS,
    NODES_DEAD,
    NODES_DEGRADED,
    NODES_HEALTHY,
    child,
    forget,
)
from llmgw.runtime.registry import Registry

BY_STATUS = (
    (Status.HEALTHY, NODES_HEALTHY),
    (Status.DEGRADED, NODES_DEGRADED),
    (Status.DEAD, NODES_DEAD),
)


class FleetGauges:
    """Lets the metrics page read a registry, from whatever thread it is written in."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._shown: set[UpstreamName] = set()
        for status, gauge in BY_STATUS:
            gauge.set_function(partial(_count, registry, status))
        self.reload()

    def reload(self) -> None:
        """Show the nodes of the registry's configuration, and no longer those that are gone."""
        names = {node.name for node in self._registry.config.nodes}
        for name in self._shown - names:
            forget(NODE_MODELS_OK, name)
            for status in Status:
                forget(NODE_STATUS, name, status)
        for name in names - self._shown:
            child(NODE_MODELS_OK, name).set_function(partial(_models_ok, self._registry, name))
            for status in Status:
                read = partial(_has_status, self._registry, name, status)
                child(NODE_STATUS, name, status).set_function(read)
        self._shown = names


def _models_ok(registry: Registry, name: UpstreamName) -> float:
    state = registry.named(name)
    return float(state is not None and state.discovery.is_believed)


def _has_status(registry: Registry, name: UpstreamName, status: Status) -> float:
    state = registry.named(name)
    return float(state is not None and _status_of(registry, state) is status)


def _count(registry: Registry, status: Status) -> float:
    return sum(
        isinstance(one.upstream, Node) and _status_of(registry, one) is status
        for one in registry.states()
    )


def _status_of(registry: Registry, state: UpstreamState) -> Status:
    threshold = registry.config.gateway.request_overload_threshold
    return state.health.status(registry.clock(), overload_threshold=threshold)
