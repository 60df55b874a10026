"""The head of a response as bytes, in one join: the lines that the server says itself."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus

from llmgw.core.types import Dialect

CLOSE = b"connection: close\r\n"
KEEP = b"connection: keep-alive\r\n"  # for HTTP/1.0, where it is not the default
UPGRADE = b"connection: upgrade\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"

_STATUS_LINES = {
    one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus
}


def status_line(status: int) -> bytes:
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


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


def id_lines(request_id: str, dialect: Dialect) -> bytes:
    """What every answer to this request carries."""
    text = f"x-request-id: {request_id}\r\n"
    if dialect is Dialect.MESSAGES:
        text += f"request-id: {request_id}\r\n"
    return text.encode("latin-1")
