"""What the client gets once the last candidate has failed."""

import json

import pytest

from llmgw.core.classify import Fault, classify
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject, parse_error
from llmgw.core.final import Failure, final_failure
from llmgw.core.types import Dialect, RouteClass
from tests import builders

SECRET = "sk-abcDEF0123456789"


def failed(kind, *, account=False, status=None, headers=(), body=b"", error=None, **fields):
    upstream = builders.account("x", **fields) if account else builders.node("n")
    error = error or parse_error(body)
    fault = Fault.from_error(kind, error, status=status)
    verdict = classify(fault, provenance=None, lane=RouteClass.HTTP, is_account=account)
    candidate = Candidate("p/x", upstream)
    return Failure(candidate, fault, verdict, headers, body, error)


def refused(status, body=b"", **fields):
    return failed(FaultKind.STATUS, status=status, body=body, **fields)


def in_band(error, **fields):
    return failed(FaultKind.IN_BAND, status=200, error=error, **fields)


def final(*failures, dialect=Dialect.CHAT):
    return final_failure(failures, dialect=dialect, request_id="req_1")


def error_of(answer):
    return json.loads(answer.body)["error"]


def body(**error):
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("kind", "status", "code", "type"),
    [
        (FaultKind.UNSUPPORTED, 426, "websocket_unsupported", "invalid_request_error"),
        (FaultKind.CONNECT, 503, "no_reachable_backend", "service_unavailable"),
        (FaultKind.EXHAUSTED, 503, "no_reachable_backend", "service_unavailable"),
        (FaultKind.LOST, 503, "no_reachable_backend", "service_unavailable"),
        (FaultKind.DEAD, 503, "no_reachable_backend", "service_unavailable"),
        (FaultKind.TIMEOUT, 504, "upstream_timeout", "server_error"),
        (FaultKind.CUT, 502, "upstream_error", "server_error"),
        (FaultKind.INVALID, 502, "upstream_error", "server_error"),
        (FaultKind.EMPTY, 502, "upstream_error", "server_error"),
    ],
)
def test_where_nobody_answered_the_answer_is_ours(kind, status, code, type):
    answer = final(failed(FaultKind.CONNECT), failed(kind))

    assert answer.status == status
    assert error_of(answer) == {
        "message": answer.message,
        "type": type,
        "param": None,
        "code": code,
    }
    assert answer.headers == (
        ("content-type", "application/json"),
        ("x-request-id", "req_1"),
    )


def test_nobody_reachable_is_said_in_these_words():
    assert final(failed(FaultKind.CONNECT)).message == "no reachable node available"


def test_a_nodes_answer_is_the_clients_byte_for_byte():
    raw = b'{ "error": {"message":"loading 2","type":"server_error","code":"busy","x":1} }'
    headers = (("content-type", "application/json"), ("retry-after", "2"), ("server", "x"))

    answer = final(refused(500), refused(503, raw, headers=headers))

    assert (answer.status, answer.body) == (503, raw)
    assert answer.headers == (*headers[:2], ("x-request-id", "req_1"))
    assert (answer.message, answer.type, answer.code) == ("loading 2", "server_error", "busy")


@pytest.mark.parametrize("raw", [b"<html>Bad Gateway</html>", b'{"detail":"Not Found"}'])
def test_a_nodes_answer_that_holds_no_error_passes_too(raw):
    answer = final(refused(502, raw))

    assert (answer.status, answer.body, answer.type) == (502, raw, "server_error")
    assert answer.message == "the upstream failed to answer"


def test_an_empty_answer_gets_a_body_of_ours():
    answer = final(refused(503, headers=(("content-type", "text/plain"), ("retry-after", "1"))))

    assert error_of(answer)["message"] == "the upstream failed to answer"
    assert dict(answer.headers)["content-type"] == "application/json"
    assert dict(answer.headers)["retry-after"] == "1"


def test_a_nodes_error_inside_a_stream_is_no_stream_any_more():
    raw = body(code=400, type="BadRequestError", message="too hot")
    error = ErrorObject(400, "BadRequestError", None, "too hot")
    stream = (("content-type", "text/event-stream"), ("x-engine", "v"))

    answer = final(in_band(error, headers=stream, body=raw))

    assert (answer.status, answer.body) == (400, raw)
    assert answer.headers[:2] == (("content-type", "application/json"), ("x-engine", "v"))


def test_the_last_answer_counts_where_the_last_candidate_gave_none():
    answer = final(refused(500, b"first"), refused(429, b"second"), failed(FaultKind.CONNECT))

    assert (answer.status, answer.body) == (429, b"second")


@pytest.mark.parametrize(
    ("error", "dialect", "status"),
    [
        (ErrorObject(code=503), Dialect.CHAT, 503),
        (ErrorObject(code="model_not_found"), Dialect.CHAT, 404),
        (ErrorObject(type="BadRequestError"), Dialect.CHAT, 400),
        (ErrorObject(type="rate_limit_error"), Dialect.CHAT, 429),
        (ErrorObject(type="overloaded_error"), Dialect.MESSAGES, 529),
        (None, Dialect.CHAT, 502),
    ],
)
@pytest.mark.parametrize("account", [False, True], ids=["node", "account"])
def test_an_in_band_failure_becomes_a_status(error, dialect, status, account):
    assert final(in_band(error, account=account), dialect=dialect).status == status


def test_a_nodes_in_band_error_keeps_its_words():
    error = ErrorObject(400, "BadRequestError", "messages", "too many pictures")

    answer = final(in_band(error, headers=(("content-type", "text/event-stream"),)))

    assert error_of(answer) == {
        "message": "too many pictures",
        "type": "BadRequestError",
        "param": "messages",
        "code": 400,
    }
    assert answer.headers[0] == ("content-type", "application/json")
    assert len([1 for name, _ in answer.headers if name == "content-type"]) == 1


def test_messages_routes_get_anthropics_shape():
    answer = final(in_band(ErrorObject(type="overloaded_error")), dialect=Dialect.MESSAGES)

    assert json.loads(answer.body)["type"] == "error"
    assert error_of(answer)["type"] == "overloaded_error"
    assert ("request-id", "req_1") in answer.headers


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_account_may_explain_the_clients_own_fault(status):
    raw = body(
        message=f"too long for {SECRET}",
        type="invalid_request_error",
        param="messages",
        code="context_length_exceeded",
    )

    answer = final(refused(status, raw, account=True))

    assert answer.status == status
    assert error_of(answer) == {
        "message": "too long for [redacted]",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        pytest.param(
            refused(400, body(message="raw"), account=True, hide_messages=True),
            "the upstream refused this request",
            id="kept back by configuration",
        ),
        pytest.param(
            refused(404, body(message="raw"), account=True),
            "the upstream refused this request",
            id="another status",
        ),
        pytest.param(
            refused(401, body(message="raw", code="invalid_api_key"), account=True),
            "the upstream refused the gateway's credential",
            id="our credential",
        ),
        pytest.param(
            refused(429, body(message="raw"), account=True), "the upstream is busy", id="full"
        ),
        pytest.param(
            refused(400, body(message="raw", code="model_not_found"), account=True),
            "the upstream does not serve this model",
            id="a model miss at 400",
        ),
        pytest.param(
            refused(500, body(message="raw"), account=True),
            "the upstream failed to answer",
            id="a failure",
        ),
        pytest.param(
            refused(400, b"raw", account=True), "the upstream refused this request", id="no JSON"
        ),
        pytest.param(
            refused(400, body(message=""), account=True),
            "the upstream refused this request",
            id="no words",
        ),
    ],
)
def test_any_other_message_of_an_account_stays_here(failure, message):
    answer = final(failure)

    assert answer.message == error_of(answer)["message"] == message
    assert b"raw" not in answer.body


def test_an_accounts_codes_pass_unless_they_name_somebody():
    raw = body(message="raw", type=SECRET, param="user-Q1w2E3r4T5", code=SECRET)

    answer = final(refused(429, raw, account=True))

    assert (answer.type, answer.param, answer.code) == ("rate_limit_error", None, None)
    assert final(refused(400, body(code=1500), account=True)).code == 1500
    assert final(refused(400, account=True)).type == "invalid_request_error"


def test_of_an_accounts_headers_only_known_ones_pass():
    headers = (
        ("content-type", "text/html"),
        ("content-encoding", "gzip"),
        ("retry-after", "3"),
        ("openai-organization", "org"),
    )

    assert final(refused(429, b"x", account=True, headers=headers)).headers == (
        ("content-type", "application/json"),
        ("retry-after", "3"),
        ("x-request-id", "req_1"),
    )
