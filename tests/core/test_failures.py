import json

import pytest

from llmgw.core import document
from llmgw.core.failures import (
    MAX_CLASSIFIED_BYTES,
    ErrorObject,
    error_answer,
    find_error,
    has_bare_detail,
    in_band_status,
    is_failed_incomplete,
    parse_error,
)
from llmgw.core.types import Dialect

FOUND = {"code": "found", "type": "t", "param": "p", "message": "m"}
OTHER = {"code": "other"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"response": {"error": FOUND}, "error": OTHER}, id="response.error first"),
        pytest.param({"error": FOUND, "status_details": {"error": OTHER}}, id="error"),
        pytest.param(
            {"response": {"status_details": {"error": FOUND}}, "status_details": {"error": OTHER}},
            id="response.status_details.error",
        ),
        pytest.param({"status_details": {"error": FOUND}, "type": "error"}, id="status_details"),
        pytest.param({"response": {"error": None}, "error": FOUND}, id="null is passed over"),
        pytest.param({"response": "x", "error": FOUND}, id="text is passed over"),
        pytest.param({"object": "error", **FOUND}, id="the top level, by object"),
        pytest.param({"error": "text", "object": "error", **FOUND}, id="an error that is a word"),
        pytest.param({"type": "error", "error": FOUND}, id="an envelope round it"),
    ],
)
def test_the_first_place_with_an_object_holds_the_error(answer):
    assert find_error(answer) == ErrorObject("found", "t", "p", "m")
    assert parse_error(json.dumps(answer).encode()) == ErrorObject("found", "t", "p", "m")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "error",
        [],
        {},
        {"error": None},
        {"error": "text"},
        {"detail": FOUND},
        {"response": {"error": None}},
        {"type": "response.created"},
        {"type": ["error"]},
    ],
)
def test_no_other_shape_is_an_error(answer):
    assert find_error(answer) is None


def test_at_the_top_level_the_type_marks_the_envelope_and_says_no_more():
    error = find_error({"type": "error", "code": "server_error", "message": "m", "param": None})

    assert error == ErrorObject("server_error", None, None, "m")


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        (404, 404),
        ("404", "404"),
        (True, None),
        (1.5, None),
        ({}, None),
        (None, None),
        pytest.param(2**64, None, id="longer than can be written"),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_a_code_is_text_or_a_number(code, kept):
    assert find_error({"error": {"code": code}}) == ErrorObject(kept)


def test_what_may_be_logged_is_bounded_and_plain():
    error = find_error({"error": {"code": "a\nb", "type": "x" * 900, "param": "in[0].f"}})

    assert error == ErrorObject("a_b", "x" * 64, "in[0].f")


def test_a_message_can_always_be_sent_on():
    assert find_error({"error": {"message": "cut \ud83e"}}) == ErrorObject(message="cut ?")


def test_the_message_is_in_no_representation():
    assert "secret" not in repr(find_error({"error": {"message": "secret"}}))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"detail": "Not Found"}', True),
        (b'{"detail": "x", "error": {}}', False),
        (b'{"error": {}}', False),
        (b"[]", False),
        (b"Not Found", False),
        (b'{"detail": "' + b"x" * MAX_CLASSIFIED_BYTES + b'"}', False),
    ],
)
def test_a_bare_detail_is_a_framework_s_answer(body, told):
    assert has_bare_detail(body) is told


def test_a_large_body_is_not_classified():
    body = json.dumps({"error": {"code": "x"}, "pad": "y" * MAX_CLASSIFIED_BYTES}).encode()

    assert parse_error(body) is None


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, False),
        ({"incomplete_details": {"reason": "content_filter"}}, False),
        ({"incomplete_details": {"reason": "server_error"}}, True),
        ({"incomplete_details": None}, False),
        ({"error": {"code": "x"}}, True),
        ({}, False),
    ],
)
def test_an_incomplete_response_failed_unless_it_reached_a_limit(response, failed):
    assert is_failed_incomplete(response) is failed
    assert is_failed_incomplete({"type": "response.incomplete", "response": response}) is failed


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(None, 502, id="no error object"),
        pytest.param(ErrorObject(400, "BadRequestError"), 400, id="an integer is the status"),
        pytest.param(ErrorObject(599), 599, id="the last status"),
        pytest.param(ErrorObject(600), 502, id="an integer beyond them"),
        pytest.param(ErrorObject(1302, "rate_limit_error"), 429, id="a vendor's number"),
        pytest.param(ErrorObject("model_not_found", "invalid_request_error"), 404, id="model"),
        pytest.param(ErrorObject(None, "invalid_request_error", "model"), 404, id="code-less"),
        pytest.param(ErrorObject(None, "NotFoundError", "model"), 404, id="an engine's"),
        pytest.param(ErrorObject(None, "NotFoundError", "input"), 502, id="another param"),
        pytest.param(ErrorObject(7, "NotFoundError", "model"), 502, id="another number"),
        pytest.param(ErrorObject("x", "invalid_request_error", "model"), 400, id="another code"),
        pytest.param(ErrorObject(None, "permission_error"), 400, id="a client's fault"),
        pytest.param(ErrorObject("context_length_exceeded"), 400, id="too long"),
        pytest.param(ErrorObject("rate_limit_exceeded", "invalid_request_error"), 429, id="code"),
        pytest.param(ErrorObject(None, "timeout_error"), 504, id="timeout"),
        pytest.param(ErrorObject("server_is_overloaded"), 503, id="full"),
        pytest.param(ErrorObject("server_error"), 502, id="a server's fault"),
        pytest.param(ErrorObject("server_error", "invalid_request_error"), 502, id="its code"),
        pytest.param(ErrorObject("invented", "invented"), 502, id="anything else"),
    ],
)
def test_a_final_failure_in_a_200_answer_becomes_a_status(error, status):
    assert in_band_status(error, Dialect.CHAT) == status


def test_an_overloaded_upstream_is_529_on_messages():
    assert in_band_status(ErrorObject(None, "overloaded_error"), Dialect.MESSAGES) == 529
    assert in_band_status(ErrorObject(None, "overloaded_error"), Dialect.RESPONSES) == 503


def test_the_upstream_s_own_words_make_an_error_answer():
    event = {"type": "response.failed", "response": {"error": FOUND}}

    assert json.loads(error_answer(event, Dialect.RESPONSES)) == {"error": FOUND}
    assert json.loads(error_answer(event, Dialect.MESSAGES)) == {"type": "error", "error": FOUND}


def test_the_upstream_s_own_words_are_told_however_deep_they_are():
    deep = b'{"error":{"code":400,"x":' + b"[" * 1000 + b"]" * 1000 + b"}}"

    assert error_answer(document.parse(deep), Dialect.CHAT) == deep
