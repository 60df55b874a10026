"""What a client sees of its pool's models."""

from dataclasses import replace

import pytest

from llmgw.core.config import BaseUrl, Config, ModelConfig, ModelsConfig, Node
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import UpstreamState
from tests.fakes.gateway import FakeRegistry, keyring
from tests.fakes.raw_client import request

ID = "org/mix-7b:q4"


def listing(name: str, *models: str, lens=()) -> UpstreamState:
    node = Node(name, BaseUrl("http", name, 80))
    return UpstreamState(
        node, discovery=ModelDiscovery(State.KNOWN, models, listed_at=0.0, max_lens=lens)
    )


@pytest.fixture
def gateway(gateway):
    gateway.registry = FakeRegistry(
        (
            listing("a", ID, "m2", lens=((ID, 8192), ("m2", 100))),
            listing("b", ID, lens=((ID, 4096),)),
        )
    )
    gateway.config = replace(Config(), models=ModelsConfig(available=(ModelConfig("configured"),)))
    return gateway


async def test_the_list_is_the_union_of_what_is_configured_and_advertised(door):
    reply = await door.ask(request("GET", "/v1/models"))

    assert reply.json["object"] == "list"
    assert [one["id"] for one in reply.json["data"]] == ["configured", ID, "m2"]
    assert door.gateway.pools == ["cluster"]


async def test_a_model_always_has_its_four_members_and_the_smallest_length(door):
    reply = await door.ask(request("GET", "/v1/models"))

    configured, both, _ = reply.json["data"]
    assert configured == {
        "id": "configured",
        "object": "model",
        "created": 1_704_067_200,
        "owned_by": "llmgw",
    }
    assert both["max_model_len"] == 4096


@pytest.mark.parametrize("name", [ID, "org%2Fmix-7b%3Aq4", f"{ID}?x=1"])
async def test_every_listed_id_can_be_fetched(door, name):
    reply = await door.ask(request("GET", f"/v1/models/{name}"))

    assert (reply.status, reply.json["id"], reply.json["object"]) == (200, ID, "model")


async def test_another_id_is_not_found(door):
    reply = await door.ask(request("GET", "/v1/models/org/none"))

    assert (reply.status, reply.code) == (404, "model_not_found")
    assert "none" not in reply.json["error"]["message"]


async def test_a_key_sees_only_its_own_models(door):
    door.gateway.keyring = keyring("k", models=("m2",))
    client = await door.client()
    headers = [("api-key", "k")]

    listed = await client.ask(request("GET", "/v1/models", headers=headers))
    hidden = await client.ask(request("GET", f"/v1/models/{ID}", headers=headers))

    assert [one["id"] for one in listed.json["data"]] == ["m2"]
    assert hidden.status == 404


async def test_a_list_needs_a_key_where_there_are_keys(door):
    door.gateway.keyring = keyring("k")

    assert (await door.ask(request("GET", "/v1/models"))).code == "invalid_api_key"


async def test_anthropic_clients_get_their_members_beside_the_others(door):
    headers = [("anthropic-version", "2023-06-01")]

    reply = await door.ask(request("GET", "/v1/models", headers=headers))

    document = reply.json
    assert (document["has_more"], document["first_id"], document["last_id"]) == (
        False,
        "configured",
        "m2",
    )
    assert document["data"][2] == {
        "id": "m2",
        "object": "model",
        "created": 1_704_067_200,
        "owned_by": "llmgw",
        "max_model_len": 100,
        "type": "model",
        "display_name": "m2",
        "created_at": "2024-01-01T00:00:00Z",
    }


async def test_an_empty_list_has_neither_first_nor_last(door):
    door.gateway.keyring = keyring("k", models=("none",))
    headers = [("api-key", "k"), ("anthropic-version", "2023-06-01")]

    reply = await door.ask(request("GET", "/v1/models", headers=headers))

    assert reply.json == {
        "object": "list",
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }
