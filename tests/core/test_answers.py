import json

import pytest

from llmgw.core.answers import error_body, error_event, keepalive
from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import EventCutter
from llmgw.core.types import Dialect

OPENAI = [Dialect.CHAT, Dialect.COMPLETIONS, Dialect.RESPONSES, Dialect.JSON]
TOLD = {"status": 502, "message": "m", "type": "server_error", "code": "c", "param": "p"}


@pytest.mark.parametrize("dialect", OPENAI)
def test_an_error_has_the_shape_of_openai(dialect):
    body = json.loads(error_body(dialect, **TOLD))

    assert body == {"error": {"message": "m", "type": "server_error", "param": "p", "code": "c"}}


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_on_messages_it_has_anthropic_s_shape_and_a_type_by_status(status, type):
    told = TOLD | {"status": status}
    expected = {"type": "error", "error": {"type": type, "message": "m"}}

    assert json.loads(error_body(Dialect.MESSAGES, **told)) == expected
    assert error_event(Dialect.MESSAGES, **told).startswith(b"event: error\ndata: {")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_an_error_event_is_one_whole_event_that_ends_a_stream(dialect):
    cutter = EventCutter()

    (event,) = cutter.feed(error_event(dialect, **TOLD))

    assert cutter.pending == b""
    assert sight_of(event, dialect) is Sight.FAULT


def test_an_error_event_on_responses_has_the_members_that_are_documented():
    event = error_event(Dialect.RESPONSES, **TOLD, sequence_number=8)

    name, data = event.splitlines()[:2]
    assert name == b"event: error"
    assert json.loads(data.removeprefix(b"data: ")) == {
        "type": "error",
        "code": "c",
        "message": "m",
        "param": "p",
        "sequence_number": 8,
    }


def test_a_chat_error_event_is_data_alone():
    event = error_event(Dialect.CHAT, **TOLD)

    assert event == b"data: " + error_body(Dialect.CHAT, **TOLD) + b"\n\n"


@pytest.mark.parametrize("dialect", OPENAI)
def test_a_keepalive_is_a_comment_and_one_newline(dialect):
    assert keepalive(dialect) == b": keepalive\n"


def test_a_keepalive_on_messages_is_a_ping():
    (event,) = EventCutter().feed(keepalive(Dialect.MESSAGES))

    assert (event.name, json.loads(event.data)) == ("ping", {"type": "ping"})
