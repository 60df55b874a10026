"""Gauges that nobody counts while things change: they are set when somebody is about to read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import BaseUrl, Node, Upstream
from llmgw.core.types import UpstreamName
from llmgw.observe.metrics import (
    CIRCUITS,
    NODE_DRAINING,
    UPSTREAM_CONNECTIONS,
    child,
    forget,
)
from llmgw.observe.plain import Gauge
from llmgw.upstream.pool import PoolStats

Series = tuple[str, ...]


class LiveGauges:
    """Reads circuits, drains and connections to upstreams."""

    def __init__(
        self,
        *,
        circuits: Callable[[], Mapping[CircuitKey, Circuit]],
        pools: Callable[[], Mapping[BaseUrl, PoolStats]],
        upstreams: Callable[[], Iterable[Upstream]],
        drained: Callable[[], Collection[UpstreamName]],
    ) -> None:
        self._circuits = circuits
        self._pools = pools
        self._upstreams = upstreams
        self._drained = drained
        self._shown: dict[Gauge, set[Series]] = defaultdict(set)

    def refresh(self) -> None:
        upstreams = tuple(self._upstreams())
        self._show(CIRCUITS, _count_circuits(self._circuits()))
        self._show(NODE_DRAINING, _find_drained(upstreams, self._drained()))
        self._show(UPSTREAM_CONNECTIONS, _count_connections(self._pools(), upstreams))

    def _show(self, gauge: Gauge, values: Mapping[Series, int]) -> None:
        for series, value in values.items():
            child(gauge, *series).set(value)
        for series in self._shown[gauge] - values.keys():
            forget(gauge, *series)
        self._shown[gauge] = set(values)


def _count_circuits(circuits: Mapping[CircuitKey, Circuit]) -> Counter[Series]:
    """Those of an assignment that has none open are no series."""
    return Counter(
        (key.assignment, circuit.state)
        for key, circuit in circuits.items()
        if circuit.state is not CircuitState.CLOSED
    )


def _find_drained(
    upstreams: Iterable[Upstream], drained: Collection[UpstreamName]
) -> dict[Series, int]:
    nodes = (one for one in upstreams if isinstance(one, Node))
    return {(one.name,): 1 for one in nodes if one.drain or one.name in drained}


def _count_connections(
    pools: Mapping[BaseUrl, PoolStats], upstreams: Iterable[Upstream]
) -> dict[Series, int]:
    """Of upstreams at one host and port, the first one that is configured has them all."""
    left = dict(pools)
    found: dict[Series, int] = {}
    for one in upstreams:
        stats = left.pop(BaseUrl(one.url.scheme, one.url.host, one.url.port), None)
        if stats is not None:
            found[one.name, "busy"] = stats.open - stats.idle
            found[one.name, "idle"] = stats.idle
    return found
