"""The gateway's own words, in the dialect of the route: error bodies, error events, keepalives."""

from __future__ import annotations

import orjson

from llmgw.core.types import Dialect

_COMMENT = b": keepalive\n"
_PING = b'event: ping\ndata: {"type": "ping"}\n\n'

# https://docs.anthropic.com/en/api/errors
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_body(
    dialect: Dialect,
    *,
    status: int,
    message: str,
    type: str,
    code: str | int | None = None,
    param: str | None = None,
) -> bytes:
    """The JSON body of an error answer. Anthropic's shape has a type by status and no code."""
    if dialect is Dialect.MESSAGES:
        return orjson.dumps(_anthropic(status, message))
    return orjson.dumps(_openai(message, type, code, param))


def error_event(
    dialect: Dialect,
    *,
    status: int,
    message: str,
    type: str,
    code: str | int | None = None,
    param: str | None = None,
    sequence_number: int = 0,
) -> bytes:
    """One whole event that ends a stream which has failed after the status line went out."""
    if dialect is Dialect.MESSAGES:
        return _event(b"error", _anthropic(status, message))
    if dialect is not Dialect.RESPONSES:
        return b"data: " + orjson.dumps(_openai(message, type, code, param)) + b"\n\n"
    return _event(
        b"error",
        {
            "type": "error",
            "code": code,
            "message": message,
            "param": param,
            "sequence_number": sequence_number,
        },
    )


def keepalive(dialect: Dialect) -> bytes:
    """A sign of life between events.

    The comment has ONE newline: after a blank line some clients dispatch an empty event.
    """
    return _PING if dialect is Dialect.MESSAGES else _COMMENT


def _openai(message: str, type: str, code: str | int | None, param: str | None) -> object:
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def _anthropic(status: int, message: str) -> object:
    usual = "invalid_request_error" if status < 500 else "api_error"
    kind = _ANTHROPIC_TYPES.get(status, usual)
    return {"type": "error", "error": {"type": kind, "message": message}}


def _event(name: bytes, data: object) -> bytes:
    return b"event: " + name + b"\ndata: " + orjson.dumps(data) + b"\n\n"
