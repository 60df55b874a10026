"""Why a request would go where it would, without sending any."""

from hashlib import sha256

import pytest

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import CircuitsConfig, KeyConfig
from llmgw.core.errors import GatewayError
from llmgw.core.policy import KeyRing
from llmgw.core.settle import Changes
from llmgw.core.types import CLUSTER, AssignmentId, RouteClass
from llmgw.runtime.explain import explain, parse_question
from tests.builders import call, node
from tests.fakes.scene import Scene, answers

SECRET = "sk-CANARY-of-a-client"
NODES = (node("a"), node("b", 8001), node("c", 8002, drain=True), node("d", 8003, ring="r"))


@pytest.fixture
def scene():
    scene = Scene(
        answers(), answers(), upstreams=NODES, circuits=CircuitsConfig(failure_threshold=1)
    )
    scene.gateway.keyring = KeyRing.open()
    return scene


def asked(scene: Scene, **fields: object):
    return explain(scene.gateway, parse_question({"model": "m", **fields}))


def plan_of(found) -> list[str]:
    return [one["assignment"] for one in found["plan"]]


def reasons(found) -> dict[str, str]:
    return {one["assignment"]: one["reason"] for one in found["excluded"]}


def test_every_exclusion_has_its_reason(scene):
    key = CircuitKey(CLUSTER, AssignmentId("cluster/b"), "m", RouteClass.HTTP)
    scene.gateway.board.apply(Changes(((key, Failed("x")),)))

    found = asked(scene)

    assert plan_of(found) == ["cluster/a"]
    assert reasons(found) == {
        "cluster/b": "circuit_open",
        "cluster/c": "draining",
        "cluster/d": "ring",
    }
    assert found["refusal"] is None
    assert found["plan"][0]["provenance"] == "observed"


def test_what_the_decisions_were_made_of_is_told_of_every_assignment(scene):
    key = CircuitKey(CLUSTER, AssignmentId("cluster/b"), "m", RouteClass.HTTP)
    scene.gateway.board.apply(Changes(((key, Failed("upstream_error")),)))
    scene.registry.enter(NODES[0])

    found = asked(scene)
    a, b, *_ = found["standing"]

    assert found["strategy"] == "round_robin"
    assert [one["assignment"] for one in found["standing"]] == [f"cluster/{x}" for x in "abcd"]
    assert (a["status"], a["listing"], a["load"]) == ("healthy", "known", 1)
    assert a["listed_ago"] > 0
    assert a["circuit"] == {"state": "closed", "failures": 0, "reason": None, "due_in": None}
    assert (b["circuit"]["state"], b["circuit"]["reason"]) == ("open", "upstream_error")
    assert 50 < b["circuit"]["due_in"] <= 60


def test_lanes_are_told_apart(scene):
    key = CircuitKey(CLUSTER, AssignmentId("cluster/b"), "m", RouteClass.HTTP)
    scene.gateway.board.apply(Changes(((key, Failed("x")),)))

    assert sorted(plan_of(asked(scene, stream=True))) == ["cluster/a", "cluster/b"]
    assert asked(scene, stream=True)["route_class"] == "sse"
    assert asked(scene, route="/v1/embeddings", stream=True)["route_class"] == "http"


def test_who_asks_why_takes_nobodys_turn(scene):
    assert plan_of(asked(scene)) == plan_of(asked(scene))


async def test_the_next_request_goes_where_it_was_said(scene):
    said = plan_of(asked(scene))[0]

    await scene.serves(call())

    assert said == f"cluster/{scene.upstreams.names[0]}"


def test_a_model_that_nobody_has_is_refused_as_a_client_would_be(scene):
    found = asked(scene, model="none")

    assert found["plan"] == []
    assert found["refusal"]["code"] == "no_eligible_backend"
    assert reasons(found)["cluster/a"] == "missing"


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("ci", id="by its name"),
        pytest.param(sha256(SECRET.encode()).hexdigest()[:16], id="by its id"),
        pytest.param(SECRET, id="by itself"),
    ],
)
def test_a_key_brings_its_pool_and_policy_and_is_not_shown(scene, key):
    digest = sha256(SECRET.encode()).hexdigest()
    scene.gateway.keyring = KeyRing.from_keys([KeyConfig("ci", digest, models=("x-*",))])

    found = asked(scene, key=key)

    assert (found["key"], found["pool"], found["allowed"]) == ("ci", CLUSTER, False)
    assert SECRET not in str(found)


def test_an_open_gateway_says_so_and_names_the_model_that_was_meant(scene):
    scene.gateway.keyring = KeyRing.open()

    found = asked(scene, model="mm", key="nobody")

    assert (found["is_open"], found["nearest"]) == (True, "m")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"model": ""}, "a model must be named", id="no model"),
        pytest.param({"model": "m", "route": "/v1/none"}, "no such route", id="no such route"),
        pytest.param({"model": "m"}, "a key must be named", id="no key"),
        pytest.param({"model": "m", "key": SECRET}, "no such key", id="an unknown key"),
    ],
)
def test_what_cant_be_explained_is_said_without_the_key(scene, fields, says):
    scene.gateway.keyring = KeyRing.from_keys([])

    with pytest.raises(GatewayError) as error:
        explain(scene.gateway, parse_question(fields))

    assert says in error.value.message
    assert SECRET not in error.value.message
