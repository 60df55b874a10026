"""Answers of the admin pages, each with the headers that keep them to themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
from aiohttp import web

CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "llmgw",
}


def html(
    text: str, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        text=text,
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**HEADERS, **(headers or {})},
    )


def json(document: object) -> web.Response:
    body = orjson.dumps(document, default=_named)
    return web.Response(body=body, content_type="application/json", headers=HEADERS)


def see_other(path: str) -> web.Response:
    return web.Response(status=303, headers={**HEADERS, "Location": path})


def asset(body: bytes, content_type: str, tag: str) -> web.Response:
    """A file of ours: may be kept, and is asked for again by its tag."""
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": tag}
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)


def not_modified(tag: str) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": tag}
    return web.Response(status=304, headers=headers)


def _named(value: object) -> object:
    """Named tuples are objects too."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} is no JSON")
