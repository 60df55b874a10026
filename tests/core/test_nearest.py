"""Which model a client may have meant, and that asking for it costs little."""

from difflib import SequenceMatcher

import pytest

from llmgw.core.nearest import COMPARE, LONGEST, LOOK_AT, nearest_model
from tests.counting import calls


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


def cost(known, **options):
    return calls(nearest_model, "org/model-77-instruc", known, **options)


def test_of_very_many_models_only_the_first_are_looked_at():
    names = [f"org/model-{at}-instruct" for at in range(40 * LOOK_AT)]

    assert cost(dict.fromkeys(names)) == cost(dict.fromkeys(names[:LOOK_AT]))
    assert cost(dict.fromkeys(names), of=SequenceMatcher.real_quick_ratio) == COMPARE


def test_of_a_long_name_only_the_beginning_is_looked_at():
    class Name(str):
        __slots__ = ()

        def __iter__(self):
            raise AssertionError("nobody has cut it")

    names = [f"org/model-{at}-" + "x" * 10_000 for at in range(9)]

    assert cost(dict.fromkeys(map(Name, names))) == cost([name[:LONGEST] for name in names])
