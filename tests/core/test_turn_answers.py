import json

import pytest

from llmgw.core.errors import LimitReached
from llmgw.core.turn_answers import (
    error_frame,
    frame_of_answer,
    frame_of_error,
    frame_of_event,
    previous_not_found,
    warm_up_frames,
)


def test_an_error_of_ours_is_a_frame_that_says_when_to_come_back():
    error = LimitReached("too much", headers=(("retry-after", "3"), ("x-other", "y")))

    assert json.loads(frame_of_error(error)) == {
        "type": "error",
        "status": 429,
        "error": {
            "message": "too much",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
        },
        "headers": {"retry-after": "3"},
    }


def test_without_a_hint_there_are_no_headers():
    assert json.loads(error_frame(500, {})) == {"type": "error", "status": 500, "error": {}}


def test_an_error_answer_becomes_a_frame():
    frame = frame_of_answer(503, (), b'{"error":{"code":"c","extra":1}}')

    assert json.loads(frame)["error"] == {"code": "c", "extra": 1}


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"detail":"x"}', b'{"error":"x"}'])
def test_an_answer_without_an_error_object_gets_one(body):
    frame = json.loads(frame_of_answer(404, (), body))

    assert frame["status"] == 404
    assert frame["error"]["type"] == "invalid_request_error"


def test_an_engine_that_does_not_know_the_response_says_it_in_the_clients_code():
    body = b'{"error":{"type":"invalid_request_error","param":"response_id","code":404}}'

    assert frame_of_answer(404, (), body) == previous_not_found()
    assert json.loads(previous_not_found())["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        pytest.param(
            b'{"type":"error","code":"rate_limit_exceeded","message":"m"}',
            429,
            "rate_limit_exceeded",
            id="flat",
        ),
        pytest.param(b'{"error":{"code":503,"type":"x"}}', 503, 503, id="an engine's envelope"),
        pytest.param(b"nonsense", 502, None, id="no JSON"),
    ],
)
def test_an_error_event_becomes_a_frame_with_a_status(data, status, code):
    frame = json.loads(frame_of_event(data))

    assert (frame["type"], frame["status"], frame["error"]["code"]) == ("error", status, code)


def test_a_warm_up_is_a_response_without_output():
    created, completed = map(json.loads, warm_up_frames("resp_1", "m", created=7))

    assert [created["type"], completed["type"]] == ["response.created", "response.completed"]
    assert created["response"]["status"] == "in_progress"
    for one in (created, completed):
        assert one["response"]["id"] == "resp_1"
        assert one["response"]["output"] == []
