"""Which model a client may have meant, and that asking for it costs little."""

from time import process_time

import pytest

from llmgw.core.nearest import LONGEST, nearest_model


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        ("llama-3:8b", "llama3:8b"),
        ("Qwen", "qwen"),
        ("zzz", None),
        pytest.param("", None, id="no model at all"),
        pytest.param("qwen", None, id="one that is known"),
        pytest.param("llama3:8b" * 23, None, id="too long for a name"),
    ],
)
def test_the_nearest_model_is_for_the_log(model, nearest):
    assert nearest_model(model, ["qwen", "llama3:8b"]) == nearest


def test_where_nothing_is_known_nothing_is_near():
    assert nearest_model("llama", ()) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("org/model-{}-instruct", id="very many"),
        pytest.param("org/model-{}-" + "x" * 10_000, id="long ones"),
    ],
)
def test_what_it_costs_is_bounded(name):
    known = dict.fromkeys(name.format(at) for at in range(20_000 if len(name) < LONGEST else 1000))
    began = process_time()

    nearest_model("org/model-77-instruc", known)

    assert process_time() - began < 0.25  # to compare all of them takes seconds
