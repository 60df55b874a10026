"""The gateway's own errors carry what a client sees, and an upstream's none of its words."""

import pytest

from llmgw.core import errors
from llmgw.core.errors import FaultKind, GatewayError, UpstreamError


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("GatewayError", 500, "internal_error"),
        ("InvalidRequest", 400, "invalid_request"),
        ("AuthenticationFailed", 401, "invalid_api_key"),
        ("PermissionDenied", 403, "model_not_allowed"),
        ("NotFound", 404, "not_found"),
        ("MethodNotAllowed", 405, "method_not_allowed"),
        ("TooLarge", 413, "request_too_large"),
        ("UnsupportedMedia", 415, "unsupported_media_type"),
        ("LimitReached", 429, "rate_limit_exceeded"),
        ("Unavailable", 503, "no_eligible_backend"),
        ("LoopDetected", 508, "loop_detected"),
    ],
)
def test_each_has_a_status_and_a_code(name, status, code):
    error = getattr(errors, name)("words of ours")

    assert isinstance(error, GatewayError)
    assert (error.status, error.code, error.message) == (status, code, "words of ours")
    assert (error.param, error.headers) == (None, ())


def test_what_is_given_replaces_what_is_usual():
    headers = (("retry-after", "3"),)

    error = GatewayError("m", status=418, code="c", type="t", param="p", headers=headers)

    assert (error.status, error.code, error.type, error.param) == (418, "c", "t", "p")
    assert error.headers == headers
    assert (GatewayError.status, GatewayError.code) == (500, "internal_error")


@pytest.mark.parametrize(
    ("detail", "text"), [("", "connect"), ("refused", "connect: refused")], ids=["bare", "detail"]
)
def test_an_upstreams_error_says_what_kind_it_is(detail, text):
    error = UpstreamError(FaultKind.CONNECT, detail)

    assert (error.kind, error.detail, str(error)) == (FaultKind.CONNECT, detail, text)
