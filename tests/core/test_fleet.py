"""The fleet's values can be kept: nothing in them changes."""

from dataclasses import FrozenInstanceError

import pytest

from llmgw.core.config import Account, BaseUrl, Node
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import EngineLoad, Gpu, UpstreamState, place_of
from llmgw.core.health import NodeHealth
from llmgw.core.types import Provenance, UpstreamName

URL = BaseUrl("http", "10.0.0.5", 8000)
NODE = Node(UpstreamName("a"), URL)
ACCOUNT = Account(UpstreamName("b"), URL, models=("gpt",))
KNOWN = ModelDiscovery(State.KNOWN, ("llama",))


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (UpstreamState(NODE), "health"),
        (NodeHealth(), "fails"),
        (KNOWN, "names"),
        (EngineLoad(1, 2, 0.5), "running"),
        (Gpu("0"), "gpu"),
    ],
    ids=["state", "health", "discovery", "load", "gpu"],
)
def test_no_member_can_be_set(value, member):
    with pytest.raises(FrozenInstanceError):
        setattr(value, member, None)


def test_names_and_gpus_are_tuples():
    state = UpstreamState(NODE, discovery=KNOWN, gpus=(Gpu("0"),))

    assert isinstance(state.discovery.names, tuple)
    assert isinstance(state.gpus, tuple)
    assert hash(state)  # nothing in it can change


@pytest.mark.parametrize(("upstream", "is_account"), [(NODE, False), (ACCOUNT, True)])
def test_accounts_are_told_from_nodes(upstream, is_account):
    assert UpstreamState(upstream).is_account is is_account


@pytest.mark.parametrize(
    ("upstream", "model", "provenance"),
    [
        pytest.param(NODE, "llama", Provenance.OBSERVED, id="listed by a node"),
        pytest.param(NODE, "gpt", None, id="not listed"),
        pytest.param(ACCOUNT, "gpt", Provenance.CONFIGURED, id="configured for the account"),
        pytest.param(ACCOUNT, "llama", Provenance.OBSERVED, id="listed by the account"),
    ],
)
def test_why_an_upstream_is_believed_to_serve_a_model(upstream, model, provenance):
    assert UpstreamState(upstream, discovery=KNOWN).provenance(model) is provenance


def test_an_upstream_is_known_by_its_name_and_url():
    elsewhere = BaseUrl("http", "10.0.0.6", 8000)

    assert place_of(NODE) == place_of(Node(NODE.name, URL, ring="r"))
    assert place_of(NODE) != place_of(Node(NODE.name, elsewhere))
    assert place_of(NODE) != place_of(Node(UpstreamName("z"), URL))
