"""`parse_call`: what is refused, what is found, and that a client's bytes stay what they were."""

import json
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmgw.core import objects
from llmgw.core.config import ModelsConfig
from llmgw.core.errors import InvalidRequest
from llmgw.core.members import LARGE, with_model
from llmgw.core.objects import MAX_DEPTH, parse_object
from llmgw.core.routes import BY_PATH
from llmgw.core.types import RouteClass
from llmgw.core.wire import MAX_FILES, Asker, asker_of, parse_call
from tests import builders

DEFAULT = ModelsConfig(default="d/1 é")


def parse(body, *, path="/v1/chat/completions", target=None, headers=(), models=DEFAULT):
    return parse_call(
        BY_PATH[path],
        target=target or path,
        headers=headers,
        body=body,
        models=models,
        request_id="req_1",
    )


def nested(depth, opening="[", closing="]"):
    return ('{"model":"m","x":' + opening * (depth - 1) + closing * (depth - 1) + "}").encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not json", id="no JSON"),
        pytest.param(b"[1]", id="an array"),
        pytest.param(b'"model"', id="a string"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"model":"m"', id="cut short"),
        pytest.param(b'{"model":"m"} {}', id="two documents"),
        pytest.param(b'{"model":"m","x":NaN}', id="NaN"),
        pytest.param(b'{"model":"m","x":"\xff"}', id="invalid UTF-8"),
        pytest.param(b'\xef\xbb\xbf{"model":"m"}', id="a byte order mark"),
        pytest.param('{"model":"m"}'.encode("utf-16"), id="another encoding"),
        pytest.param(nested(MAX_DEPTH + 1), id="one level too deep"),
        pytest.param(nested(1200), id="deeper than the parser goes"),
        pytest.param(nested(100_000), id="absurdly deep"),
        pytest.param(
            b'{"model":"m","x":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}",
            id="objects too deep",
        ),
    ],
)
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(InvalidRequest) as refused:
        parse(body)

    assert (refused.value.status, refused.value.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(nested(MAX_DEPTH), id="as deep as is allowed"),
        pytest.param(b'{"model":"m","x":[' + b"[]," * 3000 + b"1]}", id="wide, not deep"),
        pytest.param(b'{"model":"m","x":12345678901234567890123}', id="a big integer"),
        pytest.param(b'{"model":"m","x":1e400}', id="a number beyond any float"),
        pytest.param(b'{"model":"m","x":"\\ud83d"}', id="half a surrogate pair"),
        pytest.param(b'{"model":"m","x":1,"x":2}', id="a duplicate of another key"),
        pytest.param(b' { "x" : 1 , "model" : "m" } \n', id="spaces"),
        pytest.param(b'{"\\u006dodel":"m"}', id="an escaped key"),
        pytest.param(b'{"model":"m","tools":[{"model":"x"},{"Model":7}]}', id="nested keys"),
        pytest.param(b'{"MODEL ":1,"model":"m","a":"\\"model\\":"}', id="only like the key"),
        pytest.param(b'{"model":"m","y":"model","z":["model","MODEL"]}', id="values"),
        pytest.param(b'{"model":"m","x":"\\u0041\\u006d"}', id="escapes elsewhere"),
    ],
)
def test_legal_bodies_pass_as_the_bytes_they_are(body):
    call = parse(body)

    assert call.model == "m"
    assert call.body is body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"model":"a","messages":[],"model":"b"}', id="twice"),
        pytest.param(b'{"model":"a","model":"a"}', id="twice the same"),
        pytest.param(b'{"model":null,"model":"a"}', id="null, then a name"),
        pytest.param(b'{"Model":"a"}', id="in another spelling"),
        pytest.param(b'{"model":"a","MODEL":"b"}', id="in two spellings"),
        pytest.param(b'{"model":"a","\\u006dodel":"b"}', id="twice, once escaped"),
        pytest.param(b'{"\\u004dodel":"b"}', id="another spelling, escaped"),
        pytest.param(b'{"m\\u006Fd\\u0065l":"a","x":{"model":1},"model":"b"}', id="mixed"),
        pytest.param(b'{"model":7}', id="a number"),
        pytest.param(b'{"model":["a"]}', id="a list"),
        pytest.param(b'{"model":false}', id="false"),
        pytest.param(b'{"model":"\\ud83d"}', id="half a character"),
    ],
)
def test_a_model_that_could_be_read_in_two_ways_is_refused(body):
    with pytest.raises(InvalidRequest) as refused:
        parse(body)

    assert (refused.value.code, refused.value.param) == ("invalid_request", "model")


@pytest.mark.parametrize(
    ("body", "forwarded"),
    [
        (b"{}", '{"model":"d/1 é"}'),
        (b" \n{ \n} ", ' \n{"model":"d/1 é" \n} '),
        (b'{"a": 0.10}', '{"model":"d/1 é","a": 0.10}'),
        (b'{"model":null}', '{"model":"d/1 é"}'),
        (b'{"model":""}', '{"model":"d/1 é"}'),
        (b'{"a":{"model":null},"model" : null , "b":1}', None),
        (b'{"a":"}{\\"[","model":"","b":[{}]}', '{"a":"}{\\"[","model":"d/1 é","b":[{}]}'),
        (b'{"\\u006dodel":""}', '{"\\u006dodel":"d/1 é"}'),
        (b'{"a":{"Model":1}}', '{"model":"d/1 é","a":{"Model":1}}'),
    ],
)
def test_the_default_takes_the_place_of_a_missing_model(body, forwarded):
    if forwarded is None:
        forwarded = '{"a":{"model":null},"model" : "d/1 é" , "b":1}'

    call = parse(body)

    assert call.model == "d/1 é"
    assert call.body == forwarded.encode()


@pytest.mark.parametrize("body", [b"{}", b'{"model":null}', b'{"model":""}'])
def test_without_a_default_a_model_must_be_given(body):
    with pytest.raises(InvalidRequest) as refused:
        parse(body, models=ModelsConfig())

    assert (refused.value.status, refused.value.code) == (400, "model_not_specified")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("model"), inner),
    max_leaves=12,
)
MEMBERS = st.dictionaries(st.text().filter(lambda key: key.lower() != "model"), VALUES, max_size=6)
SPACE = st.text(" \t\n\r", max_size=2)


@given(
    members=MEMBERS,
    absent=st.sampled_from([None, "", ...]),
    place=st.integers(0, 6),
    space=SPACE,
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    name=st.text(min_size=1),
)
def test_whatever_surrounds_it_only_the_model_is_put_in(
    members, absent, place, space, indent, ascii_only, name
):
    pairs = list(members.items())
    if absent is not ...:
        pairs.insert(place, ("model", absent))
    text = json.dumps(dict(pairs), indent=indent, ensure_ascii=ascii_only)
    body = (space + text + space).encode()

    after = with_model(body, name, present=absent is not ...)

    assert json.loads(after) == dict(pairs) | {"model": name}
    untouched = common(body, after) + common(body[::-1], after[::-1])
    assert untouched >= len(body) - {None: len("null"), "": len('""')}.get(absent, 0)


def common(one, other):
    """How many bytes they begin with are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def test_what_the_client_ties_the_request_to_is_found():
    body = json.dumps(
        {
            "model": "m",
            "previous_response_id": "resp_1",
            "prompt_cache_key": "cache-1",
            "store": False,
            "stream": True,
            "input": [
                "text",
                {"type": "input_file", "file_id": "file_a"},
                {"role": "user", "content": "file_id"},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "x", "file_id": "no"},
                        {"type": "input_file", "file_id": "file_b"},
                        {"type": "input_file", "file_id": "file_a"},
                        {"type": "input_file", "file_id": 7},
                        {"type": "input_file", "filename": "x", "file_data": "y"},
                    ],
                },
            ],
        }
    ).encode()
    headers = (
        ("x-codex-session-id", "codex"),
        ("session_id", "mine"),
        ("session_id", "second"),
        ("x-stainless-retry-count", "2"),
    )

    call = parse(body, path="/v1/responses", headers=headers)

    assert call.previous_response_id == "resp_1"
    assert call.file_ids == ("file_a", "file_b")
    assert call.cache_key == "cache-1"
    assert call.session == "mine"
    assert call.stainless_retries == 2
    assert call.store is False
    assert call.headers is headers


@pytest.mark.parametrize(
    "name",
    [
        "x-session-id",
        "session-id",
        "session_id",
        "x-session-affinity",
        "x-codex-session-id",
        "x-codex-conversation-id",
    ],
)
def test_a_session_is_named_by_any_of_six_headers(name):
    assert parse(b'{"model":"m"}', headers=((name, "s1"),)).session == "s1"
    assert parse(b'{"model":"m"}', headers=((name, ""),)).session is None


def files(number):
    parts = [{"type": "input_file", "file_id": f"file_{at}"} for at in range(number)]
    return json.dumps({"model": "m", "input": [{"content": [*parts, *parts]}]}).encode()


def test_no_request_refers_to_more_files_than_may_be_looked_up():
    call = parse(files(MAX_FILES), path="/v1/responses")

    assert len(call.file_ids) == MAX_FILES
    with pytest.raises(InvalidRequest):
        parse(files(MAX_FILES + 1), path="/v1/responses")


def test_a_plain_request_is_tied_to_nothing():
    call = parse(b'{"model":"m","previous_response_id":"","prompt_cache_key":"\\udc00"}')

    assert call.previous_response_id is None
    assert call.file_ids == ()
    assert call.cache_key is None
    assert call.session is None
    assert call.store is True
    assert call.stainless_retries == 0


def test_only_the_responses_dialect_has_continuations_and_files():
    body = (
        b'{"model":"m","previous_response_id":"r","input":[{"type":"input_file","file_id":"f"}]}'
    )

    assert parse(body).previous_response_id is None
    assert parse(body).file_ids == ()
    assert parse(body, path="/v1/responses").file_ids == ("f",)
    assert parse(b'{"model":"m","input":"file_id"}', path="/v1/responses").file_ids == ()


@pytest.mark.parametrize("value", ["", "x", "-1", "1e3", "99999", "²"])
def test_a_retry_count_that_is_none_counts_as_zero(value):
    assert (
        parse(b'{"model":"m"}', headers=(("x-stainless-retry-count", value),)).stainless_retries
        == 0
    )


@pytest.mark.parametrize(
    ("target", "forwarded"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1/chat/completions/?a=1&b=%2F?", "/v1/chat/completions?a=1&b=%2F?"),
        ("http://host/v1/chat/completions?x", "/v1/chat/completions?x"),
    ],
)
def test_the_target_is_the_route_with_the_clients_query(target, forwarded):
    assert parse(b'{"model":"m"}', target=target).target == forwarded


@pytest.mark.parametrize(
    ("path", "stream", "lane"),
    [
        ("/v1/chat/completions", "true", RouteClass.SSE),
        ("/v1/chat/completions", "false", RouteClass.HTTP),
        ("/v1/chat/completions", '"true"', RouteClass.HTTP),
        ("/v1/embeddings", "true", RouteClass.HTTP),
        ("/v1/responses/compact", "true", RouteClass.COMPACT),
    ],
)
def test_the_lane_is_the_routes_or_that_of_streams(path, stream, lane):
    call = builders.call(f'{{"model":"m","stream":{stream}}}'.encode(), path=path)

    assert call.lane is lane
    assert call.is_compact is (lane is RouteClass.COMPACT)


# --- large bodies, of which the values that nobody needs are skipped


def outcome(body, path="/v1/responses"):
    """What the request is; a refusal by its text."""
    try:
        return parse(body, path=path)
    except InvalidRequest as refused:
        return str(refused)


def both_ways(body):
    """As if it were large, and as if it were small."""
    with mock.patch.object(objects, "LARGE", -1):
        large = outcome(body)
    with mock.patch.object(objects, "LARGE", len(body)):
        return large, outcome(body)


PIECES = st.sampled_from(
    [
        *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b".", b"e", b"+", b"true"),
        *(b"null", b"NaN", b"\0", b"\x1f", b"\xff", b"\xed\xa0\x80", b"\\u", b"\\ud800", b"\\x"),
        *(
            b" ",
            b"\f",
            b"\xef\xbb\xbf",
            b"1e999",
            b"01",
            b'"a":1,',
            b'"model":"n",',
            b'"Model":1,',
        ),
        *(b'"stream":true,', b'"stream":false,', b'"store":false,', b'"mode\\u006c":"x",'),
    ]
)
CHANGES = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 1), PIECES | st.just(b"")), max_size=4
)
DOCUMENTS = st.sampled_from(
    [
        {
            "model": "m",
            "stream": True,
            "tools": [1, -2.5e3, {"model": '\\"\u00e9', "c": None}],
            "input": [{"type": "input_file", "file_id": "file_x"}],
        },
        {"input": "text", "model": "m", "prompt_cache_key": "k", "previous_response_id": "r"},
        {"model": None, "store": False, "x": {"y": {"model": "n"}}},
    ]
)


@given(document=DOCUMENTS, ascii_only=st.booleans(), changes=CHANGES)
@example(document={"model": "m"}, ascii_only=True, changes=[(1, 0, b'"model":"n",')])
def test_a_large_body_is_read_as_a_small_one_would_be(document, ascii_only, changes):
    body = json.dumps(document, ensure_ascii=ascii_only).encode()
    for at, removed, put in changes:
        body = body[:at] + put + body[at + removed :]

    large, small = both_ways(body)

    assert large == small


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(
    st.dictionaries(st.sampled_from(sorted(objects.NEEDED)) | st.text(), JSON_VALUES),
    st.booleans(),
)
def test_of_any_object_what_is_needed_is_found(document, ascii_only):
    body = json.dumps(document | {"model": "m"}, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    )

    large, small = both_ways(body)

    assert large == small


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 1024, 1025, 100_000])
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
def test_a_large_body_is_nested_no_deeper_than_a_small_one(depth, pair):
    opening, closing = pair
    inner = opening * (depth - 1) + "1" + closing * (depth - 1)

    large, small = both_ways(('{"model":"m","x":' + inner + "}").encode())

    assert large == small
    assert isinstance(large, str) is (depth > MAX_DEPTH)


def large_body(**members):
    return json.dumps({"x": ["a" * LARGE], "y": {"z": 1}, **members}).encode()


def test_of_a_large_body_only_what_is_needed_is_made():
    body = large_body(model="m", stream=True, input="text", store=False)

    assert parse_object(body) == {
        "x": None,
        "y": None,
        "model": "m",
        "stream": True,
        "input": None,
        "store": False,
    }
    assert parse_object(body + b" " * LARGE)["model"] == "m"


def test_files_are_looked_for_in_a_large_body_that_names_some():
    call = parse(
        large_body(model="m", input=[{"type": "input_file", "file_id": "f"}]), path="/v1/responses"
    )

    assert call.file_ids == ("f",)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(large_body(model="m")[:-1] + b',"model":"n"}', id="the model twice"),
        pytest.param(large_body(model="m", Model="n"), id="another spelling"),
        pytest.param(large_body(model=1), id="no string"),
        pytest.param(large_body(model="m")[:-1], id="cut short"),
        pytest.param(large_body(model="m").replace(b"aa", b"\xff\xfe", 1), id="invalid UTF-8"),
        pytest.param(large_body(model="m").replace(b"aa", b"\\x", 1), id="an invalid escape"),
        pytest.param(large_body(model="m").replace(b": 1", b": 01", 1), id="an invalid number"),
        pytest.param(b"[" + large_body(model="m") + b"]", id="an array"),
    ],
)
def test_a_large_body_is_refused_for_what_a_small_one_is(body):
    with pytest.raises(InvalidRequest):
        parse(body)


def test_half_a_surrogate_pair_in_a_large_body_is_the_upstreams_to_judge():
    body = large_body(model="m", prompt_cache_key="k").replace(b"aa", b"\\ud800", 1)

    assert parse(body).cache_key == "k"


def test_who_asks_is_read_from_the_first_line_of_each_name():
    headers = (
        ("session-id", ""),
        ("x-session-affinity", "b"),
        ("x-session-affinity", "c"),
        ("x-stainless-retry-count", "2"),
    )

    assert asker_of(headers) == Asker("b", 2)
    assert asker_of((("session-id", ""),)) == Asker()
    assert asker_of(()) == Asker()
    assert asker_of((("x-stainless-retry-count", "1000"),)).stainless_retries == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"model":"m","stream":true,"stream":false}', id="the last of two counts"),
        pytest.param('{"model":"m","model":"m"}', id="a model that is there twice"),
        pytest.param('{"model":"m","Model":"n"}', id="in other case, too"),
        pytest.param('{"\\u006dodel":"m"}', id="behind an escape"),
        pytest.param('{"model":["m"]}', id="a list"),
        pytest.param('{"model":{"m":1}}', id="an object"),
        pytest.param('{"model":"m","seed":123456789012345678901234567890}', id="a big number"),
        pytest.param('{"model":"m","x":"\\ud800"}', id="half a surrogate pair"),
        pytest.param('{"model":"m\\ud800"}', id="half of one in the model"),
        pytest.param('\ufeff{"model":"m"}', id="a byte order mark"),
        pytest.param('{"model":"m"} x', id="something behind it"),
        pytest.param('["model","m"]', id="no object"),
        pytest.param('{"model":"m","x":NaN}', id="no number"),
        pytest.param('{"model":"m","prompt_cache_key":7,"store":null}', id="of other types"),
    ],
)
def test_a_large_body_with_something_odd_is_read_as_a_small_one(text):
    large, small = both_ways(text.encode())

    assert large == small


def test_what_a_client_may_still_write_to_is_read_as_well():
    body = large_body(model="m", stream=True)

    assert parse_object(bytearray(body)) == parse_object(body)
