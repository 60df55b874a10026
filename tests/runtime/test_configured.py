"""Models that the configuration names and a node does not list: said once, never more."""

import pytest

from llmgw.core.config import ModelConfig, ModelsConfig
from llmgw.runtime.configured import ConfiguredModels, expected_of
from tests.builders import node

A, IN_RING = node("a"), node("r", ring="r1")
MODELS = ModelsConfig(
    default="base", available=(ModelConfig("llama"), ModelConfig("qwen"), ModelConfig("big", "r1"))
)


def said(caplog) -> list[tuple[str, str]]:
    texts = {record.message for record in caplog.records}
    assert texts <= {"configured model not served by node"}
    return [(record.node, record.model) for record in caplog.records]


@pytest.mark.parametrize(
    ("one", "models", "expected"),
    [
        pytest.param(A, MODELS, ["llama", "qwen", "base"], id="without a ring"),
        pytest.param(IN_RING, MODELS, ["big"], id="in a ring: only its models, no default"),
        pytest.param(node("x", ring="r2"), MODELS, [], id="in a ring without models"),
        pytest.param(
            A,
            ModelsConfig("big", (ModelConfig("big", "r1"),)),
            [],
            id="the default is looked at only where it has no entry",
        ),
        pytest.param(A, ModelsConfig("base"), ["base"], id="only a default"),
        pytest.param(A, ModelsConfig(), [], id="nothing configured"),
        pytest.param(
            A, ModelsConfig(None, (ModelConfig("m"), ModelConfig("m"))), ["m"], id="twice"
        ),
    ],
)
def test_what_a_node_is_expected_to_serve(one, models, expected):
    assert list(expected_of(one, models)) == expected


def test_each_model_that_is_missing_is_said(caplog):
    ConfiguredModels().list_changed(A, ["qwen", "other"], MODELS)

    assert said(caplog) == [("a", "llama"), ("a", "base")]


def test_it_is_said_once_however_often_the_list_changes(caplog):
    configured = ConfiguredModels()
    for names in (["qwen"], [], ["qwen", "llama"], ["base"]):
        configured.list_changed(A, names, MODELS)

    assert said(caplog) == [("a", "llama"), ("a", "base"), ("a", "qwen")]


def test_each_node_is_said_for_itself(caplog):
    configured = ConfiguredModels()
    for one in (A, node("b")):
        configured.list_changed(one, ["qwen", "base"], MODELS)

    assert said(caplog) == [("a", "llama"), ("b", "llama")]


def test_a_served_list_says_nothing(caplog):
    ConfiguredModels().list_changed(A, ["llama", "qwen", "base"], MODELS)

    assert said(caplog) == []


def test_a_node_that_was_gone_is_told_of_again(caplog):
    configured = ConfiguredModels()
    for kept in ([A], [], [A]):
        configured.list_changed(A, ["qwen", "base"], MODELS)
        configured.keep_only(kept)

    assert said(caplog) == [("a", "llama")] * 2
