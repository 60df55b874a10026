"""Which bodies are a list of models."""

import gzip
import json

import pytest

from llmgw.core.listing import Page, Unreadable, parse_listing


def listing(*entries, **more) -> bytes:
    return json.dumps({"object": "list", "data": list(entries), **more}).encode()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        pytest.param(listing({"id": "b"}, {"id": "a"}), ("b", "a"), id="in the node's order"),
        pytest.param(listing({"id": "a"}, {"id": "b"}, {"id": "a"}), ("a", "b"), id="duplicates"),
        pytest.param(listing(), (), id="an empty list is a list"),
        pytest.param(
            listing(
                {"id": "m"}, {}, {"id": None}, {"id": 7}, {"id": ""}, "text", None, [], {"id": []}
            ),
            ("m",),
            id="odd entries are skipped",
        ),
        pytest.param(listing({"id": "org/Model:latest"}), ("org/Model:latest",), id="as it is"),
        pytest.param(listing({"id": "模型 é"}), ("模型 é",), id="beyond ASCII"),
        pytest.param(b' \n{"data":[{"id":"m"}]}\r\n', ("m",), id="white space around"),
        pytest.param(b'{"data":[],"data":[{"id":"m"}]}', ("m",), id="a repeated member"),
    ],
)
def test_names_are_read_from_a_list(body, names):
    page = parse_listing(body)

    assert isinstance(page, Page)
    assert page.names == names


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<!doctype html><html><body>Sign in</body></html>", id="HTML"),
        pytest.param(listing({"id": "m"})[:-3], id="truncated"),
        pytest.param(b'{"data":[{"id":"\xff\xfe"}]}', id="not UTF-8"),
        pytest.param(b'{"data":[{"id":"\\ud800"}]}', id="half a surrogate pair"),
        pytest.param(b"\xef\xbb\xbf" + listing({"id": "m"}), id="a byte order mark"),
        pytest.param(gzip.compress(listing({"id": "m"})), id="still compressed"),
        pytest.param(b"[" * 100_000, id="nested without end"),
        pytest.param(b'{"data":' + b"[" * 5000 + b"]" * 5000 + b"}", id="nested deep"),
        pytest.param(listing({"id": "m"}) * 2, id="two documents"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="a bare array"),
        pytest.param(b'[{"id":"m"}]', id="a bare array of models"),
        pytest.param(b'"data"', id="a string"),
        pytest.param(b"{}", id="no data"),
        pytest.param(b'{"data":null}', id="data is null"),
        pytest.param(b'{"data":{}}', id="data is an object"),
        pytest.param(b'{"data":"m"}', id="data is a string"),
        pytest.param(b'{"data":0}', id="data is a number"),
        pytest.param(b'{"Data":[{"id":"m"}]}', id="data in other case"),
        pytest.param(b'{"models":[{"id":"m"}]}', id="another member"),
        pytest.param(b'{"error":{"message":"loading","code":503}}', id="an error body"),
        pytest.param(listing({"id": ""}), id="only an empty id"),
        pytest.param(listing({"name": "m"}, {"id": 7}, None), id="no entry with an id"),
    ],
)
def test_anything_else_is_a_failure_and_never_an_empty_list(body):
    assert isinstance(parse_listing(body), Unreadable)


@pytest.mark.parametrize("body", [b"CANARY", b'{"error":"CANARY"}', b'{"data":"CANARY"}'])
def test_an_error_never_quotes_the_body(body):
    found = parse_listing(body)

    assert isinstance(found, Unreadable)
    assert "CANARY" not in found.error


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (4096, 4096),
        (0, None),
        (-1, None),
        (True, None),
        (False, None),
        ("4096", None),
        (1.5, None),
    ],
)
def test_a_model_length_is_a_positive_whole_number(value, kept):
    page = parse_listing(listing({"id": "m", "max_model_len": value}))

    assert isinstance(page, Page)
    assert dict(page.max_lens).get("m") == kept


@pytest.mark.parametrize(
    ("more", "after"),
    [
        pytest.param({}, None, id="no pages"),
        pytest.param({"has_more": False, "last_id": "b"}, None, id="the last page"),
        pytest.param({"has_more": True, "last_id": "x"}, "x", id="by its cursor"),
        pytest.param({"has_more": True}, "b", id="by its last entry"),
        pytest.param({"has_more": True, "last_id": None}, "b", id="a cursor that is none"),
        pytest.param({"has_more": 1, "last_id": "x"}, None, id="not said as JSON says it"),
    ],
)
def test_a_page_tells_where_the_next_one_begins(more, after):
    page = parse_listing(listing({"id": "a"}, {"id": "b"}, **more))

    assert isinstance(page, Page)
    assert page.after == after


def test_an_empty_page_leads_nowhere():
    page = parse_listing(listing(has_more=True))

    assert page == Page(())


def test_a_hundred_thousand_ids_are_read_whole():
    page = parse_listing(listing(*({"id": f"model-{n}"} for n in range(100_000))))

    assert isinstance(page, Page)
    assert len(page.names) == 100_000
    assert page.names[-1] == "model-99999"
