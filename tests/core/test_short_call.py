"""A short body in which nothing is odd is read in one go, with the same result."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core.config import ModelsConfig
from llmgw.core.members import LARGE
from llmgw.core.objects import parse_object
from llmgw.core.routes import BY_PATH
from llmgw.core.wire import Asker, build_call, short_call

CHAT = BY_PATH["/v1/chat/completions"]
ASKER = Asker("s1", 2)
HEADERS = (("x-session-id", "s1"), ("x-stainless-retry-count", "2"))


def short(body, path="/v1/chat/completions"):
    return short_call(body, BY_PATH[path], f"{path}?a=1", HEADERS, "req_1", ASKER)


def whole(body, path="/v1/chat/completions"):
    return build_call(
        parse_object(body),
        BY_PATH[path],
        target=f"{path}?a=1",
        headers=HEADERS,
        body=body,
        models=ModelsConfig(),
        request_id="req_1",
    )


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/embeddings"])
@pytest.mark.parametrize("stream", [True, False, None, 1])
@pytest.mark.parametrize("store", [True, False, None])
def test_what_is_read_is_what_the_longer_way_reads(path, stream, store):
    body = json.dumps({"model": "m1", "stream": stream, "store": store, "input": ["x"]}).encode()

    assert short(body, path) == whole(body, path)
    assert short(body, path).model == "m1"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"model":"m1"', id="no JSON"),
        pytest.param(b'["model"]', id="no object"),
        pytest.param(b"{}", id="no model"),
        pytest.param(b'{"model":""}', id="an empty model"),
        pytest.param(b'{"model":7}', id="a number"),
        pytest.param('{"model":"é"}'.encode(), id="a model that is no ASCII"),
        pytest.param(b'{"model":"a","model":"b"}', id="two models"),
        pytest.param(b'{"model":"a","Model":"b"}', id="two spellings"),
        pytest.param(b'{"model":"a","mod\\u0065l":"b"}', id="an escaped spelling"),
        pytest.param(b'{"model":"a","prompt_cache_key":"k"}', id="an affinity"),
        pytest.param(b'{"model":"a","x":"' + b"y" * LARGE + b'"}', id="a large body"),
        pytest.param(b'{"model":"a","x":[' + b"[]," * 800 + b"[]]}", id="many brackets"),
    ],
)
def test_what_is_odd_is_looked_at_more_closely(body):
    assert short(body) is None


def test_responses_are_looked_at_more_closely():
    assert short(b'{"model":"m1"}', "/v1/responses") is None


def test_many_words_are_nothing_odd():
    body = json.dumps({"model": "m1", "messages": ["word " * 800]}).encode()

    assert short(body) == whole(body)


@given(
    st.dictionaries(
        st.sampled_from(["model", "stream", "store", "input", "x"]),
        st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.integers(), st.just("m1")),
    )
)
def test_whatever_is_read_at_all_is_read_right(document):
    body = json.dumps(document).encode()
    found = short(body)

    assert found is None or found == whole(body)
