"""The head of a response as bytes, in one join."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus

from llmgw.core.types import Headers

OWN = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "request-id",
        "server",
        "transfer-encoding",
        "x-request-id",
    }
)
"""What the server says itself: such a line is dropped where a caller brings one."""

CLOSE = b"connection: close\r\n"
KEEP = b"connection: keep-alive\r\n"  # for HTTP/1.0, where it is not the default
UPGRADE = b"connection: upgrade\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"

_STATUS_LINES = {
    one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus
}


def status_line(status: int) -> bytes:
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


def header_lines(headers: Headers) -> bytes:
    """Raises `ValueError` for a name or value that would break its line (RFC 9112, 2.2)."""
    lines = [f"{name}: {value}\r\n" for name, value in headers if name not in OWN]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise ValueError("a header breaks its line")
    return text.encode("latin-1")


class _Clock:
    """The `date` line, made once a second (RFC 9110, 6.6.1)."""

    __slots__ = ("_line", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def line(self) -> bytes:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._line = f"date: {formatdate(now, usegmt=True)}\r\n".encode()
        return self._line


date_line = _Clock().line
