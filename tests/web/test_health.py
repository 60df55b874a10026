"""The document of `/health`."""

from dataclasses import replace

import orjson
import pytest

from llmgw import __version__
from llmgw.core.config import Account, BaseUrl, Config, GatewayConfig, Node
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import Gpu, UpstreamState
from llmgw.core.health import NodeHealth, Status
from llmgw.core.types import UpstreamName
from llmgw.runtime.standing import ConfigStatus
from llmgw.web.health import health_document
from tests.counting import calls, grows_evenly
from tests.fakes.gateway import FakeDrains, FakeGateway, FakeRegistry
from tests.fakes.raw_client import request

NOW = 1000.0
HEALTHY = NodeHealth()
DEGRADED = NodeHealth(Status.DEGRADED, fails=1)
DEAD = NodeHealth(Status.DEAD, fails=3)
OVERLOADED = NodeHealth(streak=3, streak_at=NOW - 1)
OVERLOADED_ONCE = NodeHealth(streak=3, streak_at=NOW - 11)


def node(name: str, health=HEALTHY, discovery=None, **options) -> UpstreamState:
    return UpstreamState(
        Node(name, BaseUrl("http", "10.0.0.5", 8000), ring="r1"),
        health=health,
        discovery=discovery or ModelDiscovery(),
        **options,
    )


def document(*states, details=True, **options):
    gateway = FakeGateway(registry=FakeRegistry(states), **options)
    found = health_document(gateway, now=NOW, details=details)
    return orjson.loads(orjson.dumps(found))


@pytest.mark.parametrize(
    ("healths", "status", "healthy"),
    [
        pytest.param([HEALTHY, HEALTHY], "ok", 2, id="all healthy"),
        pytest.param([HEALTHY, DEAD], "degraded", 1, id="some healthy"),
        pytest.param([HEALTHY, OVERLOADED], "degraded", 1, id="a streak counts"),
        pytest.param([HEALTHY, OVERLOADED_ONCE], "ok", 2, id="a streak ends"),
        pytest.param([DEGRADED, DEAD], "error", 0, id="none healthy"),
        pytest.param([], "ok", 0, id="no nodes"),
    ],
)
def test_the_status_follows_the_health_of_the_nodes(healths, status, healthy):
    found = document(*(node(f"n{number}", health) for number, health in enumerate(healths)))

    assert (found["status"], found["nodes"], found["healthy"]) == (status, len(healths), healthy)


@pytest.mark.parametrize(
    ("state", "ok"),
    [
        (State.UNTRIED, 0),
        (State.KNOWN, 1),
        (State.KNOWN_EMPTY, 1),
        (State.DEGRADED, 0),
        (State.EXPIRED, 0),
    ],
)
def test_models_are_ok_where_the_last_list_counts(state, ok):
    found = document(node("a", discovery=ModelDiscovery(state)))

    assert found["models_ok"] == ok
    assert (found["status"], found["healthy"]) == ("ok", 1)


def test_a_node_is_shown_with_all_its_members():
    found = document(
        node(
            "a",
            OVERLOADED,
            ModelDiscovery(State.DEGRADED, ("m1", "m2"), 2, 0, NOW - 4.5, "timeout"),
            gpus=(Gpu("0", 1.0, 2.0, 50.0, 60.0),),
        )
    )

    assert found["details"] == [
        {
            "ip": "10.0.0.5",
            "name": "a",
            "url": "http://10.0.0.5:8000",
            "status": "degraded",
            "req_streak": 3,
            "ring": "r1",
            "gpus": [
                {
                    "gpu": "0",
                    "memory_used_bytes": 1.0,
                    "memory_total_bytes": 2.0,
                    "utilization_percent": 50.0,
                    "temperature_celsius": 60.0,
                }
            ],
            "models": {
                "state": "degraded",
                "names": ["m1", "m2"],
                "age_seconds": 4.5,
                "fails": 2,
                "last_error": "timeout",
            },
            "draining": False,
        }
    ]


def test_a_node_that_gets_no_new_work_says_so():
    configured = UpstreamState(Node("b", BaseUrl("http", "10.0.0.6", 8000), drain=True))
    drains = FakeDrains(frozenset({UpstreamName("a")}))

    found = document(node("a"), configured, node("c"), board=drains)

    assert [one["draining"] for one in found["details"]] == [True, True, False]
    assert (found["status"], found["healthy"]) == ("ok", 3)


def test_before_a_first_list_there_are_neither_names_nor_an_age():
    [detail] = document(node("a"))["details"]

    assert detail["models"] == {
        "state": "untried",
        "names": None,
        "age_seconds": None,
        "fails": 0,
        "last_error": "",
    }


def test_accounts_are_not_nodes():
    account = UpstreamState(Account("acct", BaseUrl("https", "api.example", 443)))

    found = document(account, node("a"))

    assert (found["nodes"], [one["name"] for one in found["details"]]) == (1, ["a"])


def test_the_gateway_speaks_of_itself_too():
    found = document(config_status=ConfigStatus(1_700_000_000.5, "abc", "nodes[0].url: missing"))

    assert (found["database"], found["version"]) == ("ok", __version__)
    assert found["config"] == {
        "loaded_at": "2023-11-14T22:13:20.500000+00:00",
        "digest": "abc",
        "last_error": "nodes[0].url: missing",
    }


def fleet(size, models=5):
    names = tuple(f"model-{number}" for number in range(models))
    known = ModelDiscovery(State.KNOWN, names, listed_at=1.0)
    states = tuple(node(f"n{number}", discovery=known) for number in range(size))
    return FakeGateway(registry=FakeRegistry(states))


def test_each_further_node_costs_as_much_as_the_one_before():
    fleets = [fleet(size) for size in (100, 200, 300)]

    assert grows_evenly(
        [calls(health_document, gateway, now=NOW, details=True) for gateway in fleets]
    )


def test_the_models_of_a_node_cost_nothing():
    few, many = (
        calls(health_document, fleet(10, models), now=NOW, details=True) for models in (1, 300)
    )

    assert few == many


@pytest.mark.parametrize("shown", [True, False])
async def test_details_can_be_kept_to_the_metrics_door(door, metrics_door, shown):
    door.gateway.registry = FakeRegistry((node("a", DEAD),))
    door.gateway.config = replace(Config(), gateway=replace(GatewayConfig(), health_details=shown))

    public = await door.ask(request("GET", "/health"))
    private = await metrics_door.ask(request("GET", "/health"))

    assert (public.status, private.status) == (200, 200)
    assert ("details" in public.json) is shown
    assert "details" in private.json
