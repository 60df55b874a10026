"""The gauges that show the fleet: counted when they are read, for time alone changes them."""

from __future__ import annotations

from collections.abc import Iterator
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
)
from llmgw.runtime.registry import Registry

BY_STATUS = (
    (Status.HEALTHY, NODES_HEALTHY),
    (Status.DEGRADED, NODES_DEGRADED),
    (Status.DEAD, NODES_DEAD),
)


def show_fleet(registry: Registry) -> None:
    """Let the metrics page read a registry, from whatever thread it is written in."""
    for status, gauge in BY_STATUS:
        gauge.set_function(partial(_count, registry, status))
    NODE_MODELS_OK.tell(partial(_models_ok, registry))
    NODE_STATUS.tell(partial(_statuses, registry))


def _models_ok(registry: Registry) -> Iterator[tuple[tuple[UpstreamName], float]]:
    for state in _nodes(registry):
        yield (state.upstream.name,), float(state.discovery.is_believed)


def _statuses(registry: Registry) -> Iterator[tuple[tuple[UpstreamName, Status], float]]:
    for state in _nodes(registry):
        now = _status_of(registry, state)
        for status in Status:
            yield (state.upstream.name, status), float(status is now)


def _count(registry: Registry, status: Status) -> float:
    return sum(_status_of(registry, one) is status for one in _nodes(registry))


def _nodes(registry: Registry) -> Iterator[UpstreamState]:
    return (one for one in registry.states() if isinstance(one.upstream, Node))


def _status_of(registry: Registry, state: UpstreamState) -> Status:
    threshold = registry.config.gateway.request_overload_threshold
    return state.health.status(registry.clock(), overload_threshold=threshold)
