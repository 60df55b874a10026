"""Heads of requests as clients send them again and again, read from memory as a whole."""

from __future__ import annotations

import re
from typing import NamedTuple

from llmgw.core.fields import plain_fields
from llmgw.core.types import Headers

LONGEST_HEAD = 4096  # bytes of what is worth keeping

_REQUEST_LINE = re.compile(rb"POST (/[!-~]*) HTTP/1\.1")
_UNUSUAL = frozenset(
    {
        "content-encoding",
        "expect",
        "http2-settings",
        "sec-websocket-key1",  # of a websocket that nobody speaks: refused by aiohttp
        "transfer-encoding",
        "upgrade",
    }
)
_KEPT_OPEN = ("keep-alive", "Keep-Alive")


class PlainHead(NamedTuple):
    """Of a POST over HTTP/1.1 whose body comes as it is, and whose connection stays open."""

    path: str
    query: str  # with its "?", or empty
    headers: Headers  # but for the length
    names: tuple[str, ...]  # theirs, each once


def plain_head(head: bytes) -> PlainHead | None:
    """Given whole, without the line of its length and without its last line end."""
    if len(head) > LONGEST_HEAD:
        return None
    first, *lines = head.split(b"\r\n")
    request, headers = _REQUEST_LINE.fullmatch(first), plain_fields(lines)
    if request is None or headers is None:
        return None
    named = dict(headers)
    if len(named) < len(headers):  # of some names a second line is an error, as aiohttp has it
        return None
    if "host" not in named or not _UNUSUAL.isdisjoint(named):  # RFC 9112, section 3.2
        return None
    if named.get("connection", _KEPT_OPEN[0]) not in _KEPT_OPEN:
        return None
    path, mark, query = request[1].decode().partition("?")
    return PlainHead(path, mark + query, headers, tuple(named))
