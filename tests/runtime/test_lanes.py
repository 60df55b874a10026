"""Lanes are found for requests that wait for nothing, and hold until something changes."""

from dataclasses import replace
from unittest import mock

import pytest

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import LimitsConfig, RoutingConfig, StreamsConfig
from llmgw.core.discovery import Listed
from llmgw.core.health import Failed as Unhealthy
from llmgw.core.plan import build_plan
from llmgw.core.policy import KeyRing
from llmgw.core.settle import Changes
from llmgw.core.types import CLUSTER, RouteClass, Strategy
from llmgw.runtime import lanes as module
from llmgw.runtime.lanes import Lanes
from tests.builders import call, node, principal, streaming
from tests.fakes.clock import Clock
from tests.fakes.scene import Scene

THREE = tuple(node(name, 8000 + at) for at, name in enumerate("abc"))


class Road:
    def __init__(self, **sections) -> None:
        self.scene = Scene(upstreams=THREE, **sections)
        self.scene.upstreams.pool = lambda upstream: upstream.name
        self.gateway = self.scene.gateway
        self.clock = Clock(1000.0)
        self.lanes = Lanes(self.gateway, clock=self.clock)

    def find(self, made=None, who=None):
        return self.lanes.find(self.gateway.snapshot, made or call(), who or principal())

    def with_pool(self, **changes):
        config = self.gateway.config
        pools = (replace(config.pools[0], **changes), *config.pools[1:])
        self.gateway.replace(replace(config, pools=pools), KeyRing.open())


async def test_a_lane_knows_what_its_requests_share():
    road = Road()

    lane = road.find()

    assert (lane.label, lane.route_class) == ("m", RouteClass.HTTP)
    assert [seat.candidate.assignment for seat in lane.first] == [
        "cluster/a",
        "cluster/b",
        "cluster/c",
    ]
    assert list(lane.seats) == ["cluster/a", "cluster/b", "cluster/c"]
    assert lane.budget is road.gateway.errands.budget(CLUSTER)
    assert [seat.pool for seat in lane.first] == ["a", "b", "c"]
    assert lane.first[0].entry is road.gateway.registry.entry(THREE[0])


async def test_who_comes_first_is_who_the_plan_begins_with():
    road = Road()
    lane = road.find()

    for turn in range(7):
        plan = build_plan(lane.eligibility, size=3, strategy=Strategy.ROUND_ROBIN, turn=turn)
        assert lane.first[turn % len(lane.first)].candidate is plan.candidates[0]


async def test_it_is_kept_for_requests_of_one_kind():
    road = Road()

    lane = road.find()

    assert road.find(who=principal(labels=(("a", "b"),))) is lane
    assert road.find(streaming()) is not lane
    assert road.find(call(path="/v1/completions")) is not lane
    assert road.find(streaming()).route_class is RouteClass.SSE
    assert road.find() is lane


def reload(road):
    road.gateway.replace(road.gateway.config, KeyRing.open())


def lists_more(road):
    road.gateway.registry.discovery_event(THREE[0], Listed(("m", "n"), 0.0))


def dies(road):
    for _ in range(3):
        road.gateway.registry.health_event(THREE[0], Unhealthy(connection=True))


def opens(road):
    key = CircuitKey(CLUSTER, "cluster/a", "m", RouteClass.HTTP)
    road.gateway.board.apply(Changes(((key, Failed("x")),) * 3))


@pytest.mark.parametrize("change", [reload, lists_more, dies, opens])
async def test_it_is_made_anew_when_something_changed(change):
    road = Road()
    lane = road.find()

    change(road)

    anew = road.find()
    assert anew is not lane
    assert ("cluster/a" in anew.seats) is (change not in (dies, opens))


async def test_it_holds_as_long_as_what_it_was_found_from():
    road = Road()
    opens(road)
    lane = road.find()

    assert lane.valid_until < float("inf")
    road.clock.now = lane.valid_until - 0.001
    assert road.find() is lane
    road.clock.now = lane.valid_until
    assert road.find() is not lane


@pytest.mark.parametrize(
    "sections",
    [
        {"limits": LimitsConfig(max_in_flight=1)},
        {"routing": RoutingConfig(header_timeout=1.0)},
        {"routing": RoutingConfig(explain=True)},
        {"streams": StreamsConfig(first_event_timeout=1.0)},
    ],
)
async def test_there_is_none_where_something_may_have_to_be_waited_for(sections):
    assert Road(**sections).find() is None


async def test_there_is_none_where_a_pool_is_limited_or_gone():
    road = Road()

    road.with_pool(max_in_flight=3)
    assert road.find() is None
    road.with_pool(max_in_flight=None)
    assert road.find() is not None
    assert road.find(who=principal("gone")) is None


async def test_there_is_none_where_a_refusal_or_an_exclusion_is_to_be_told():
    road = Road()

    assert road.find(call(b'{"model":"unknown"}')) is None
    road.gateway.registry.discovery_event(THREE[0], Listed(("other",), 0.0))
    assert road.find() is None


async def test_where_another_strategy_ranks_the_plan_has_to_tell():
    road = Road()

    road.with_pool(strategy=Strategy.LEAST_LOAD)

    assert road.find().first == ()
    assert len(road.find().seats) == 3


async def test_what_is_kept_is_bounded():
    road = Road()
    with mock.patch.object(module, "MOST_KEPT", 2):
        first = road.find()
        road.find(streaming())
        assert road.find() is first
        road.find(call(path="/v1/completions"))

    assert road.find() is not first
