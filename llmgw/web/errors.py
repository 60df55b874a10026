"""The one place that turns an exception into an answer in the route's dialect."""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from llmgw.core.answers import error_body
from llmgw.core.errors import GatewayError, InvalidRequest
from llmgw.core.types import Dialect
from llmgw.observe.logs import exception_fields
from llmgw.web.downstream import HttpDownstream
from llmgw.web.protocol import HeadTooLarge

log = logging.getLogger("llmgw.web")

JSON: Final = ("content-type", "application/json")
TOO_MANY_HEADERS: Final = "Too many headers received"  # the parser's own words, of no client


def answer_error(downstream: HttpDownstream, error: Exception, dialect: Dialect) -> None:
    """Say it before the head has gone out; after that the body can only end early."""
    known = as_gateway_error(error)
    if known is None:
        log.error("request failed", extra=exception_fields(error))
        known = GatewayError("the gateway failed to handle this request")
    if downstream.committed:
        downstream.cut()
    else:
        downstream.respond(known.status, (JSON, *known.headers), body_of(known, dialect))


def as_gateway_error(error: BaseException) -> GatewayError | None:
    """What a client may be told of an error; None where the fault is the gateway's own."""
    match error:
        case GatewayError():
            return error
        case HeadTooLarge() | LineTooLong():
            return _head_too_large()
        case BadHttpMessage() if error.message == TOO_MANY_HEADERS:
            return _head_too_large()
        case BadHttpMessage():
            return InvalidRequest("this is not a well-formed HTTP/1.1 request")
        case web.RequestPayloadError():
            return InvalidRequest("the request body is malformed or ended early")
        case _:
            return None


def body_of(error: GatewayError, dialect: Dialect) -> bytes:
    return error_body(
        dialect,
        status=error.status,
        message=error.message,
        type=error.type,
        code=error.code,
        param=error.param,
    )


def _head_too_large() -> GatewayError:
    return InvalidRequest(
        "the request's line or headers are too long", status=431, code="headers_too_large"
    )
