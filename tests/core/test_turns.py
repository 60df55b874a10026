import json

import pytest

from llmgw.core.config import ModelsConfig
from llmgw.core.errors import FaultKind, InvalidRequest
from llmgw.core.members import LARGE
from llmgw.core.sight import Sight
from llmgw.core.transcript import Lead
from llmgw.core.turns import (
    Turn,
    Turnstile,
    bridged,
    fault_of_frame,
    kind_of_frame,
    parse_turn,
    session_headers,
    sight_of_frame,
)
from llmgw.core.types import RouteClass

HEADERS = (("accept", "x"), ("content-type", "y"), ("openai-beta", "b"))


def turn(frame: bytes, default: str | None = None) -> Turn | None:
    return parse_turn(
        frame,
        target="/v1/responses?x=1",
        headers=HEADERS,
        models=ModelsConfig(default=default),
        request_id="req_1",
    )


def parsed(**members: object) -> Turn:
    found = turn(json.dumps({"type": "response.create", "model": "m", **members}).encode())
    assert found is not None
    return found


def test_a_frame_is_a_call_whose_body_is_the_frame():
    frame = b'{ "type": "response.create", "model":"m", "input": "\\u00e9" }'
    found = turn(frame)

    assert found is not None
    assert found.frame() == found.call.body == frame
    assert (found.call.model, found.call.lane) == ("m", RouteClass.WEBSOCKET)
    assert found.call.stream
    assert found.call.target == "/v1/responses?x=1"
    assert not found.is_warm_up


def test_the_default_model_is_put_into_the_frame():
    found = turn(b'{"type":"response.create","input":1}', default="d")

    assert found is not None
    assert found.frame() == b'{"model":"d","type":"response.create","input":1}'
    assert json.loads(found.body())["model"] == "d"


def test_a_nested_response_is_taken_too():
    found = turn(b'{"type":"response.create","response":{"input":1,"model":null}}', default="d")

    assert found is not None
    assert json.loads(found.frame()) == {
        "type": "response.create",
        "response": {"input": 1, "model": "d"},
    }
    assert json.loads(found.body()) == {"stream": True, "input": 1, "model": "d"}


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b'{"type":"response.create","model":"m","generate":false}', id="beside"),
        pytest.param(
            b'{"type":"response.create","response":{"model":"m","generate":false}}', id="nested"
        ),
    ],
)
def test_a_warm_up_is_known(frame):
    found = turn(frame)

    assert found is not None
    assert found.is_warm_up


@pytest.mark.parametrize(
    "frame", [b"{", b"[]", b"{}", b'{"type":"response.cancel"}', b'{"type":"response.create"}']
)
def test_a_frame_that_is_no_turn_is_refused(frame):
    with pytest.raises(InvalidRequest):
        turn(frame)


def test_a_large_frame_keeps_all_of_its_members():
    members = {"input": "i" * LARGE, "tools": [{"name": "t"}], "generate": False}
    found = parsed(**members)

    assert found.is_warm_up
    assert found.members == {"type": "response.create", "model": "m", **members}
    assert json.loads(found.body()) == {
        "stream": True,
        "model": "m",
        "input": members["input"],
        "tools": members["tools"],
    }


def test_an_acknowledgement_needs_no_answer():
    assert turn(b'{"type":"response.processed"}') is None


def test_a_turn_as_a_request_leaves_the_sockets_own_members_out():
    call = bridged(parsed(input="i", background=True, generate=True, stream=False, top_p=1), None)

    assert json.loads(call.body) == {"stream": True, "model": "m", "input": "i", "top_p": 1}
    assert call.headers == (
        ("openai-beta", "b"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    )


def test_what_led_up_to_a_turn_takes_the_place_of_the_reference():
    found = parsed(input=["c"], previous_response_id="r1")

    body = json.loads(found.body(Lead(b'"a","b"', None)))
    frame = json.loads(found.frame(Lead(b'"a","b"', "r0")))

    assert body == {"stream": True, "input": ["a", "b", "c"], "model": "m"}
    assert frame == {
        "type": "response.create",
        "input": ["a", "b", "c"],
        "model": "m",
        "previous_response_id": "r0",
    }
    assert (found.previous, found.input) == ("r1", ["c"])


def test_the_lines_of_the_handshake_stay_with_the_handshake():
    lines = (("sec-websocket-key", "k"), ("sec-websocket-protocol", "p"), ("via", "v"))

    assert session_headers(lines) == (("via", "v"),)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        pytest.param(b'{"type":"response.created","x":1}', "response.created", id="first member"),
        pytest.param(b' { "type" : "error"}', "error", id="spaces"),
        pytest.param(b'{"x":1,"type":"response.failed"}', "response.failed", id="later member"),
        pytest.param(b'{"x":1}', None, id="none"),
        pytest.param(b"nonsense", None, id="no JSON"),
    ],
)
def test_the_kind_of_a_frame(frame, kind):
    assert kind_of_frame(frame) == kind


def test_a_frame_shows_what_its_event_would():
    assert sight_of_frame(b'{"type":"response.created"}') is Sight.HIDDEN
    assert sight_of_frame(b'{"type":"error","status":400,"error":{}}') is Sight.FAULT
    assert sight_of_frame(b'{"type":"response.new"}') is Sight.VISIBLE


@pytest.mark.parametrize(
    ("words", "kind", "status"),
    [
        pytest.param({"status": 429}, FaultKind.STATUS, 429, id="it states a status"),
        pytest.param({}, FaultKind.IN_BAND, 200, id="it states none"),
        pytest.param({"status": 200}, FaultKind.IN_BAND, 200, id="none of a failure"),
        pytest.param({"status": "429"}, FaultKind.IN_BAND, 200, id="no number"),
    ],
)
def test_a_failure_counts_as_the_status_that_it_states(words, kind, status):
    frame = json.dumps({"type": "error", "error": {"code": "c"}, **words}).encode()

    fault, error = fault_of_frame(frame)

    assert (fault.kind, fault.status, fault.code) == (kind, status, "c")
    assert error is not None


def test_a_codeless_model_miss_is_known_by_its_shape():
    error = {"type": "invalid_request_error", "param": "model"}
    frame = json.dumps({"type": "error", "status": 400, "error": error}).encode()

    assert fault_of_frame(frame)[0].kind is FaultKind.IN_BAND


def test_a_failure_without_an_error_object_is_one_too():
    fault, error = fault_of_frame(b'{"type":"response.failed"}')

    assert (fault.kind, error) == (FaultKind.IN_BAND, None)


# --- turnstile

CREATED = b'{"type":"response.created","response":{"id":"%s"}}'
DONE = b'{"type":"response.completed","response":{"id":"%s"}}'
DELTA = b'{"type":"response.output_text.delta","delta":"x"}'
ERROR = b'{"type":"error","error":{}}'


def test_a_new_line_lets_everything_pass():
    turnstile = Turnstile()
    turnstile.begin()

    assert turnstile.admits(DELTA)


def test_before_a_later_turn_has_started_only_its_start_and_errors_pass():
    turnstile = Turnstile()
    turnstile.begin()
    assert turnstile.admits(CREATED % b"r1")
    turnstile.begin()

    assert not turnstile.admits(DELTA)
    assert not turnstile.admits(DONE % b"r1")
    assert turnstile.admits(ERROR)
    assert turnstile.admits(CREATED % b"r2")
    assert turnstile.admits(DELTA)
    assert not turnstile.admits(DONE % b"r1")
    assert turnstile.admits(DONE % b"r2")


def test_a_response_without_an_id_belongs_to_the_turn_that_runs():
    turnstile = Turnstile()
    turnstile.begin()
    turnstile.begin()

    assert turnstile.admits(b'{"type":"response.created"}')
    turnstile.begin()
    assert turnstile.admits(CREATED % b"r1")
