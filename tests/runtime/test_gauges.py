"""The gauges show the fleet of the moment they are read in."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from llmgw.core.discovery import Listed, ListingFailed
from llmgw.core.health import Answered, Failed, Status
from llmgw.runtime.gauges import show_fleet
from llmgw.runtime.registry import Registry
from tests.builders import account, config, node
from tests.fakes.clock import Clock

A, B, C = node("gauge-a", 1), node("gauge-b", 2), node("gauge-c", 3)
SICK = Failed(connection=False)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def registry(clock):
    return Registry(config(A, B, C, account("acct")), clock=clock)


@pytest.fixture(autouse=True)
def gauges(registry):
    show_fleet(registry)


def by_status() -> list[float | None]:
    names = ("healthy", "degraded", "dead")
    return [REGISTRY.get_sample_value(f"cluster_nodes_{name}") for name in names]


def status_of(name: str) -> dict[str, float | None]:
    labels = ({"node": name, "status": status} for status in Status)
    found = {
        one["status"]: REGISTRY.get_sample_value("gateway_node_status", one) for one in labels
    }
    return {status: value for status, value in found.items() if value is not None}


def models_ok(name: str) -> float | None:
    return REGISTRY.get_sample_value("gateway_node_models_ok", {"node": name})


class TestStatus:
    def test_nodes_are_counted_and_accounts_are_not(self, registry):
        assert by_status() == [3, 0, 0]

        registry.health_event(A, SICK)
        for _ in range(3):
            registry.health_event(B, SICK)

        assert by_status() == [1, 1, 1]

    def test_each_node_shows_its_own(self, registry):
        for _ in range(3):
            registry.health_event(B, SICK)

        assert status_of("gauge-a") == {"healthy": 1, "degraded": 0, "dead": 0}
        assert status_of("gauge-b") == {"healthy": 0, "degraded": 0, "dead": 1}
        assert status_of("acct") == {}

    def test_a_streak_shows_and_runs_out(self, registry, clock):
        for _ in range(3):
            registry.health_event(A, Answered(500, clock()))
        assert by_status() == [2, 1, 0]

        clock.advance(10)

        assert by_status() == [3, 0, 0]

    def test_discovery_moves_none_of_them(self, registry):
        for _ in range(5):
            registry.discovery_event(A, ListingFailed("x"))

        assert by_status() == [3, 0, 0]

    async def test_they_may_be_read_in_another_thread(self):
        assert await asyncio.to_thread(by_status) == [3, 0, 0]


class TestModels:
    @pytest.mark.parametrize(
        ("events", "ok"),
        [
            pytest.param([], 0, id="untried"),
            pytest.param([Listed(("m",), 0)], 1, id="known"),
            pytest.param([Listed((), 0)] * 2, 1, id="known to be empty"),
            pytest.param([Listed(("m",), 0), ListingFailed("x")], 0, id="degraded"),
            pytest.param([ListingFailed("x")] * 3, 0, id="expired"),
        ],
    )
    def test_a_list_that_is_believed_is_ok(self, registry, events, ok):
        for event in events:
            registry.discovery_event(A, event)

        assert models_ok("gauge-a") == ok

    def test_an_account_has_no_series(self):
        assert models_ok("acct") is None

    def test_a_node_that_is_gone_leaves_no_series_behind(self, registry):
        registry.reload(config(B, node("gauge-d", 4)))

        assert models_ok("gauge-a") is None
        assert models_ok("gauge-b") == 0
        assert models_ok("gauge-d") == 0
        assert (status_of("gauge-a"), len(status_of("gauge-d"))) == ({}, 3)
        assert by_status() == [2, 0, 0]
