import json
import sys

import pytest

from llmgw.core import document


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(b'{"a": [1]}', {"a": [1]}, id="plain"),
        pytest.param(b'{"a": "\\ud83e"}', {"a": "\ud83e"}, id="half a surrogate pair"),
        pytest.param(b'{"a": -Infinity}', {"a": float("-inf")}, id="a number JSON lacks"),
        pytest.param(b'{"a": "\xe6\x9d"}', {"a": "\ufffd"}, id="a character cut in two"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', {"a": 1}, id="behind a byte order mark"),
        pytest.param(b"[" * 100_000, None, id="too deep"),
        pytest.param(b'{"a": 1', None, id="truncated"),
        pytest.param(b": keepalive", None, id="no JSON"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_a_value_is_read_as_leniently_as_clients_read_it(data, value):
    assert document.parse(data) == value


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"{}", True), (b" null\n", True), (b"0", True), (b"nul", False), (b"", False)],
)
def test_json_is_told_from_what_is_none(data, told):
    assert document.is_json(data) is told


@pytest.mark.parametrize("answer", [None, [], "text", 7, {"a": None}, {"a": ["b"]}])
def test_a_look_up_through_another_shape_finds_nothing(answer):
    assert document.member(answer, "a", "b") is None
    assert document.text(answer, "a", "b") is None
    assert document.count(answer, "a", "b") is None


@pytest.mark.parametrize("value", [True, -1, 1.5, "1", None])
def test_only_a_whole_number_counts(value):
    assert document.count({"n": value}, "n") is None


def test_a_look_up_follows_its_path():
    answer = {"a": {"text": "t", "n": 0}}

    assert document.text(answer, "a", "text") == "t"
    assert document.count(answer, "a", "n") == 0


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param({"a": ["é", 1.5]}, '{"a":["é",1.5]}'.encode(), id="as it is"),
        pytest.param({"a": "\ud800"}, b'{"a":"\\ud800"}', id="half a surrogate pair"),
    ],
)
def test_whatever_was_parsed_can_be_written(value, written):
    assert document.dump(value) == written


@pytest.mark.parametrize("write", [document.dump, document.dump_as_read])
def test_what_is_nested_deeper_than_encoders_recurse_is_written_like_any_other(write):
    deep = nested(600)

    assert write(deep) == deep_json(deep)


def test_the_numbers_that_json_lacks_can_be_written_as_they_came():
    assert document.dump_as_read({"a": float("nan")}) == b'{"a":NaN}'


def nested(levels):
    value = None
    for _ in range(levels):
        value = ["\ud800", {}, [], float("nan"), {"\u00e9": True, "a": value, '"': -1}]
    return value


def deep_json(value):
    """What the standard library writes where it may recurse."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    finally:
        sys.setrecursionlimit(limit)
