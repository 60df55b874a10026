"""Gauges that are set when they are read: what is there now, and no series of what is gone."""

import pytest
from prometheus_client import REGISTRY

from llmgw.core.circuit import CLOSED, Circuit, CircuitKey, CircuitState
from llmgw.core.config import BaseUrl
from llmgw.core.types import CLUSTER, AssignmentId, RouteClass
from llmgw.observe import metrics
from llmgw.runtime.live_gauges import LiveGauges
from llmgw.upstream.pool import PoolStats
from tests.builders import account, node

OPEN = Circuit(CircuitState.OPEN)
HALF_OPEN = Circuit(CircuitState.HALF_OPEN)


class Scene:
    def __init__(self) -> None:
        self.circuits = {}
        self.pools = {}
        self.upstreams = [node("live-a", 1), node("live-b", 1), account("live-c", 2)]
        self.drained = []
        self.gauges = LiveGauges(
            circuits=lambda: self.circuits,
            pools=lambda: self.pools,
            upstreams=lambda: self.upstreams,
            drained=lambda: self.drained,
        )


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.circuits, made.pools, made.upstreams = {}, {}, []
    made.gauges.refresh()


def circuit(assignment: str, model: str) -> CircuitKey:
    return CircuitKey(CLUSTER, AssignmentId(assignment), model, RouteClass.HTTP)


def circuits(assignment: str, state: str) -> float | None:
    labels = {"assignment": assignment, "state": state}
    return REGISTRY.get_sample_value("gateway_circuits", labels)


def connections(upstream: str) -> list[float | None]:
    return [
        REGISTRY.get_sample_value(
            "gateway_upstream_connections", {"upstream": upstream, "state": state}
        )
        for state in ("busy", "idle")
    ]


def draining(name: str) -> float | None:
    return REGISTRY.get_sample_value("gateway_node_draining", {"node": name})


def test_circuits_that_are_not_closed_are_counted_by_assignment(scene):
    scene.circuits = {
        circuit("p/live-a", "m"): OPEN,
        circuit("p/live-a", "n"): OPEN,
        circuit("p/live-a", "o"): HALF_OPEN,
        circuit("p/live-b", "m"): CLOSED,
    }

    scene.gauges.refresh()

    assert (circuits("p/live-a", "open"), circuits("p/live-a", "half_open")) == (2, 1)
    assert circuits("p/live-b", "closed") is None


def test_a_circuit_that_closed_leaves_no_series_behind(scene):
    scene.circuits = {circuit("p/live-a", "m"): OPEN}
    scene.gauges.refresh()

    scene.circuits = {circuit("p/live-a", "m"): HALF_OPEN}
    scene.gauges.refresh()

    assert (circuits("p/live-a", "open"), circuits("p/live-a", "half_open")) == (None, 1)


def test_connections_are_those_of_the_first_upstream_at_an_address(scene):
    scene.pools = {BaseUrl("http", "127.0.0.1", 1): PoolStats(open=5, idle=2, created=9)}

    scene.gauges.refresh()

    assert connections("live-a") == [3, 2]
    assert connections("live-b") == connections("live-c") == [None, None]


def test_the_metrics_page_shows_the_moment_it_is_read_in(scene, monkeypatch):
    monkeypatch.setattr(metrics, "_refresh", None)
    metrics.refresh()
    metrics.before_render(scene.gauges.refresh)
    scene.drained = ["live-a"]

    metrics.refresh()

    assert b'\ngateway_node_draining{node="live-a"} 1.0\n' in metrics.render()


def test_a_node_is_drained_by_its_configuration_or_by_an_operator(scene):
    scene.upstreams = [node("live-a", drain=True), node("live-b"), account("live-c")]
    scene.drained = ["live-b", "live-c", "unknown"]
    scene.gauges.refresh()
    assert (draining("live-a"), draining("live-b"), draining("live-c")) == (1, 1, None)

    scene.upstreams, scene.drained = [node("live-a")], []
    scene.gauges.refresh()

    assert draining("live-a") is draining("live-b") is None
