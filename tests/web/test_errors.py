"""Which error of which origin becomes which answer."""

import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, BadStatusLine, LineTooLong

from llmgw.core.errors import Unavailable
from llmgw.core.types import Dialect
from llmgw.web.errors import TOO_MANY_HEADERS, as_gateway_error, body_of
from llmgw.web.protocol import HeadTooLarge


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        pytest.param(LineTooLong(b"secret", 10), 431, "headers_too_large", id="a long line"),
        pytest.param(HeadTooLarge(), 431, "headers_too_large", id="a long head"),
        pytest.param(BadHttpMessage(TOO_MANY_HEADERS), 431, "headers_too_large", id="many lines"),
        pytest.param(BadStatusLine("secret"), 400, "invalid_request", id="no request line"),
        pytest.param(BadHttpMessage("secret"), 400, "invalid_request", id="a malformed head"),
        pytest.param(web.RequestPayloadError("secret"), 400, "invalid_request", id="a body"),
    ],
)
def test_what_the_parser_refuses_is_said_in_our_words(error, status, code):
    known = as_gateway_error(error)

    assert (known.status, known.code) == (status, code)
    assert "secret" not in known.message


def test_an_error_of_ours_is_what_it_says():
    error = Unavailable("no node")

    assert as_gateway_error(error) is error


def test_any_other_error_tells_a_client_nothing():
    assert as_gateway_error(KeyError("secret")) is None


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            Dialect.CHAT,
            b'{"error":{"message":"no node","type":"service_unavailable","param":"model",'
            b'"code":"no_eligible_backend"}}',
        ),
        (
            Dialect.MESSAGES,
            b'{"type":"error","error":{"type":"api_error","message":"no node"}}',
        ),
    ],
)
def test_a_body_is_in_the_dialect_of_its_route(dialect, body):
    assert body_of(Unavailable("no node", param="model"), dialect) == body
