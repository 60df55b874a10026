"""Which assignment an id ties a request to, and where ids are read from."""

import pytest

from llmgw.core.errors import Conflict
from llmgw.core.pins import (
    LONGEST_ID,
    LOOK_AT_BYTES,
    PinKind,
    Resource,
    call_of_resource,
    choose_pin,
    id_of_answer,
    id_of_stream,
    made_by,
    resources_of,
    unknown_resource,
)
from llmgw.core.routes import ID_ROUTES, Route
from llmgw.core.types import AssignmentId, RouteClass
from tests.builders import call

A, B = AssignmentId("p/a"), AssignmentId("p/b")
RESPONSES = "/v1/responses"
ROUTES = {(one.method, one.path): one for one in ID_ROUTES}


def route(method: str, path: str) -> Route:
    return ROUTES[method, path]


def responses(body: bytes):
    return call(body, path=RESPONSES)


def of_id(method: str, path: str, id: str = "", query: str = ""):
    return call_of_resource(
        route(method, path), id, query=query, headers=(), body=b"", request_id="req_1"
    )


def test_a_request_that_names_nothing_refers_to_nothing():
    assert resources_of(call()) == ()


def test_what_a_request_continues_on_comes_before_the_files_that_it_names():
    body = (
        b'{"model":"m","previous_response_id":"resp_1","input":['
        b'{"type":"input_file","file_id":"file_1"},{"type":"input_file","file_id":"file_2"}]}'
    )

    assert resources_of(responses(body)) == (
        Resource(PinKind.RESPONSE, "resp_1"),
        Resource(PinKind.FILE, "file_1"),
        Resource(PinKind.FILE, "file_2"),
    )


def test_files_alone_are_enough():
    body = b'{"model":"m","input":[{"type":"input_file","file_id":"file_1"}]}'

    assert resources_of(responses(body)) == (Resource(PinKind.FILE, "file_1"),)


@pytest.mark.parametrize(
    ("known", "pin"),
    [
        pytest.param([], None, id="nothing named"),
        pytest.param([None, None], None, id="nothing known"),
        pytest.param([None, A, None], A, id="one known"),
        pytest.param([A, A], A, id="all at one place"),
    ],
)
def test_a_request_goes_where_what_it_refers_to_is(known, pin):
    assert choose_pin(known) == pin


def test_no_assignment_has_files_of_two():
    with pytest.raises(Conflict) as refused:
        choose_pin([A, None, B])

    assert (refused.value.status, refused.value.code) == (409, "file_assignment_conflict")


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        pytest.param(responses(b'{"model":"m"}'), PinKind.RESPONSE, id="a response"),
        pytest.param(responses(b'{"model":"m","store":false}'), None, id="one not stored"),
        pytest.param(call(b'{"model":"m"}'), None, id="chat keeps nothing"),
        pytest.param(call(b'{"model":"m"}', path="/v1/responses/compact"), None, id="compact"),
        pytest.param(of_id("POST", "/v1/files"), PinKind.FILE, id="an upload"),
        pytest.param(of_id("GET", "/v1/files/{id}", "f"), None, id="a look at a file"),
        pytest.param(of_id("POST", "/v1/responses/{id}/cancel", "r"), None, id="a cancel"),
    ],
)
def test_what_a_request_makes_at_the_upstream(made, kind):
    assert made_by(made) is kind


@pytest.mark.parametrize("kind", PinKind)
def test_an_id_that_nobody_has_seen_is_told_without_repeating_it(kind):
    error = unknown_resource(kind)

    assert (error.status, error.code) == (404, f"{kind}_not_found")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param(b'{"id":"resp_1","object":"response"}', "resp_1", id="first"),
        pytest.param(b'{"object":"response", "id": "resp_1"}', "resp_1", id="anywhere"),
        pytest.param(b' { "id" : "resp_1"', "resp_1", id="the start of a long one"),
        pytest.param(b'{"id":"re\\u0073p"}', "resp", id="escaped"),
        pytest.param(b'{"id":7}', None, id="no text"),
        pytest.param(b'{"id":""}', None, id="empty"),
        pytest.param(b'{"object":1,"id":"%b"}' % (b"x" * (LONGEST_ID + 1)), None, id="too long"),
        pytest.param(b"[]", None, id="no object"),
        pytest.param(b'{"a":"%b","id":"x"}' % (b"x" * LOOK_AT_BYTES), None, id="too late"),
    ],
)
def test_the_id_of_an_answer(body, found):
    assert id_of_answer(body) == found


@pytest.mark.parametrize(
    ("start", "found"),
    [
        pytest.param(
            b'event: response.created\ndata: {"response":{"id":"resp_1"}}\n\n',
            "resp_1",
            id="first",
        ),
        pytest.param(
            b': hello\n\ndata: {"type":"ping"}\n\ndata: {"response":{"id":"r"}}\n\n',
            "r",
            id="after others",
        ),
        pytest.param(b'data: {"response":{"id":"r"', "r", id="not whole yet"),
        pytest.param(
            b'data: {"type":"response.created","response": { "id": "r","instructions":"%b"}}\n\n'
            % (b"x" * LOOK_AT_BYTES),
            "r",
            id="longer than what is looked at",
        ),
        pytest.param(
            b'data: {"x":"\\"response\\":{\\"id\\":\\"no\\"}","response":{"id":"r"', "r", id="text"
        ),
        pytest.param(b'data: {"response":{"model":"m","id":"r"}', None, id="unknown order"),
        pytest.param(b'data: {"response":{"id":3}}\n\n', None, id="no text"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_id_of_a_stream(start, found):
    assert id_of_stream(start) == found


def test_an_id_goes_back_into_the_path_and_cannot_leave_it():
    made = of_id("GET", "/v1/responses/{id}/input_items", "a/../b?c", "?limit=3")

    assert made.target == "/v1/responses/a%2F..%2Fb%3Fc/input_items?limit=3"
    assert resources_of(made) == (Resource(PinKind.RESPONSE, "a/../b?c"),)


@pytest.mark.parametrize(
    ("query", "lane"),
    [("", RouteClass.HTTP), ("?stream=true", RouteClass.SSE), ("?stream=no", RouteClass.HTTP)],
)
def test_a_response_may_be_followed_as_a_stream(query, lane):
    assert of_id("GET", "/v1/responses/{id}", "r", query).lane is lane


def test_files_have_a_lane_of_their_own_and_an_upload_names_none():
    assert of_id("POST", "/v1/files").lane is RouteClass.FILE
    assert resources_of(of_id("POST", "/v1/files")) == ()
    assert resources_of(of_id("GET", "/v1/files/{id}/content", "f")) == (
        Resource(PinKind.FILE, "f"),
    )


@pytest.mark.parametrize(
    ("path", "capability"),
    [
        ("/v1/responses/{id}/cancel", "/v1/responses"),
        ("/v1/files/{id}", "/v1/files"),
        ("/v1/files", "/v1/files"),
    ],
)
def test_routes_of_an_id_belong_to_what_made_the_id(path, capability):
    assert next(one for one in ID_ROUTES if one.path == path).capability == capability
