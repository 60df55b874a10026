import tomllib
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.config_file.writing import setting, write_document, write_value

scalars = st.one_of(
    st.text(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@given(values)
def test_any_value_written_is_read_back(value):
    assert tomllib.loads(setting("key", value)) == {"key": value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\x7f\n", '"a\\u007f\\n"'),
        (["a", 1], '["a", 1]'),
        ({"x-team": "s"}, '{ "x-team" = "s" }'),
        ({}, "{}"),
        (date(2030, 1, 31), "2030-01-31"),
        (datetime(2030, 1, 31, tzinfo=UTC), "2030-01-31T00:00:00+00:00"),
    ],
    ids=repr,
)
def test_a_value_stands_on_one_line(value, text):
    assert write_value(value) == text


DOCUMENT = {
    "top": 1,
    "gateway": {"listen": ":8000"},
    "models": {"default": "m", "available": [{"name": "m"}, {"name": "n"}]},
    "nodes": [{"url": "http://h"}],
    "pools": [{"name": "p", "assignments": [{"upstream": "a"}]}, {"name": "q"}],
    "auth": {"keys": [{"name": "k", "labels": {"a": "b"}}]},
}


def test_a_document_written_is_read_back():
    assert tomllib.loads(write_document(DOCUMENT)) == DOCUMENT


def test_each_table_of_a_list_has_a_header_of_its_own():
    text = write_document({"models": DOCUMENT["models"]})

    assert text == (
        '[models]\ndefault = "m"\n\n[[models.available]]\nname = "m"\n\n'
        '[[models.available]]\nname = "n"\n'
    )
