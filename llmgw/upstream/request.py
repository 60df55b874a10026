"""A request as bytes: the one place where a path prefix is joined and header lines are written."""

from __future__ import annotations

from functools import lru_cache

from llmgw.core.config import BaseUrl
from llmgw.core.http import UpstreamRequest

_TOKEN_SYMBOLS = frozenset("!#$%&'*+-.^_`|~")  # RFC 9110, section 5.6.2
_OURS = frozenset(("host", "content-length", "transfer-encoding"))
_WITHOUT_LENGTH = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))  # where an empty body is usual
CACHED_NAME = 64  # longer header names are not worth keeping


def render_head(url: BaseUrl, request: UpstreamRequest) -> bytes:
    """The request line and header lines, the empty line included.

    Raises ValueError for what could be read as another line or request; the text is ours.
    """
    body, method = request.body, request.method
    lines = [f"{method} {url.prefix}{request.target} HTTP/1.1", _host(url)]
    for name, value in request.headers:
        lines.append((_label(name) if len(name) <= CACHED_NAME else _check(name)) + value)
    if body or method not in _WITHOUT_LENGTH:
        lines.append(f"content-length: {len(body)}")
    text = "\r\n".join(lines)
    ends = len(lines) - 1
    if text.count("\r") != ends or text.count("\n") != ends or "\0" in text:
        raise ValueError("a request line or header value holds a line end or NUL")
    if lines[0].count(" ") != 2:
        raise ValueError("a request method or target holds a space")
    try:
        return f"{text}\r\n\r\n".encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a request header is no latin-1 text") from None


def _check(name: str) -> str:
    """`name: ` of a header that may be sent as given."""
    if not name.isascii() or not all(one.isalnum() or one in _TOKEN_SYMBOLS for one in name):
        raise ValueError("a request header name is no token")
    if not name or name.lower() in _OURS:
        raise ValueError("a request header is the connection's own to set")
    return f"{name}: "


@lru_cache(maxsize=4096)
def _host(url: BaseUrl) -> str:
    return f"host: {url.authority}"


_label = lru_cache(maxsize=512)(_check)
