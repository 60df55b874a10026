"""What the bytes of an object tell that its parsed value does not."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core.members import MOST_QUOTES, is_model_spelled_once, with_model


def is_once(body: bytes) -> bool:
    return is_model_spelled_once(orjson.loads(body), body)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"model":"m"}',
        b'{"a":{"model":"x"},"model":"m"}',
        b'{"messages":[{"model":1},{"Model":2}],"model":"m"}',
        b'{"text":"\\"model\\": twice","model":"m"}',
        b'{"model":"model"}',
        b'{"mode":"\\u006dodel","model":"m"}',
        b'{"\\u006dodel":"m"}',
        b'{"a":"\\u006dodel","b":{"\\u006dodel":1},"model":"m"}',
    ],
)
def test_one_spelling_is_one(body):
    assert is_once(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","model":"n"}',
        b'{"model":"m","x":{"y":[1,{"z":"}"}]},"model":"n"}',
        b'{"model":"m","Model":"n"}',
        b'{"MODEL":"m"}',
        b'{"mOdEl" : "m"}',
        b'{"mode\\u006C":"m","model":"n"}',
        b'{"\\u004d\\u006f\\u0064\\u0065\\u006c":"m"}',
    ],
)
def test_another_is_told(body):
    assert not is_once(body)


@pytest.mark.parametrize("quotes", [2, MOST_QUOTES - 4, MOST_QUOTES, MOST_QUOTES * 2])
@pytest.mark.parametrize("twice", [False, True])
def test_a_second_is_found_however_much_stands_between(quotes, twice):
    between = b",".join(b'"k%d":0' % at for at in range(quotes // 2))
    body = b'{"model":"m",' + between + (b',"model":"n"}' if twice else b"}")

    assert is_once(body) is not twice


SPELLINGS = st.sampled_from(["model", "Model", "MODEL", "x", "mod", "models"])
VALUES = st.recursive(
    st.sampled_from(["m", "model", '"model"', "{", "\\", 1, None, "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SPELLINGS, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(SPELLINGS, VALUES, st.booleans()), max_size=6))
def test_it_is_what_a_parser_that_keeps_all_pairs_says(pairs):
    members = ",".join(
        (_escaped(name) if escaped else json.dumps(name)) + ":" + json.dumps(value)
        for name, value, escaped in pairs
    )
    body = ("{" + members + "}").encode()

    spellings = [(name, escaped) for name, _, escaped in pairs if name.lower() == "model"]
    # an escape that spells it as it should be is the same key to every parser
    assert is_once(body) is ([name for name, _ in spellings] in ([], ["model"]))


def _escaped(name: str) -> str:
    return '"' + "".join(f"\\u{ord(one):04x}" for one in name) + '"'


def test_the_model_is_put_in_and_no_other_byte_changes():
    assert with_model(b" { }", "m", present=False) == b' {"model":"m" }'
    assert with_model(b'{"a":1}', "m", present=False) == b'{"model":"m","a":1}'
    assert with_model(b'{"a":{"model":null},"model" : null}', 'm"', present=True) == (
        b'{"a":{"model":null},"model" : "m\\""}'
    )
    assert with_model(b'{"model":"","a":""}', "m", present=True) == b'{"model":"m","a":""}'
