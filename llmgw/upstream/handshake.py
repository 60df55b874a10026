"""A websocket handshake, both halves of it as bytes (RFC 6455, section 4)."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1

import httptools

from llmgw.core.config import BaseUrl
from llmgw.core.http import ResponseHead, UpstreamRequest
from llmgw.core.types import Headers
from llmgw.upstream.framing import FixedLength, Framing
from llmgw.upstream.head import MAX_HEAD, invalid, judge
from llmgw.upstream.request import render_head

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_REFUSAL = 64 * 1024  # bytes of a refusal's body that are read: as much as is classified


def accept_of(key: str) -> str:
    """Proof that the other side speaks websocket; no secret, whatever the hash."""
    return b64encode(sha1(key.encode() + GUID, usedforsecurity=False).digest()).decode()


def render_upgrade(
    url: BaseUrl, target: str, headers: Headers, *, key: str, protocols: tuple[str, ...]
) -> bytes:
    lines = (
        *headers,
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", key),
    )
    if protocols:
        lines += (("sec-websocket-protocol", ", ".join(protocols)),)
    return render_head(url, UpstreamRequest("GET", target, lines))


class HandshakeReader:
    """Reads the answer in any cut. `head` is set once it is whole; what follows a 101 are frames,
    what follows another status is a body, of which `body` gets what may be read."""

    def __init__(self) -> None:
        self.head: ResponseHead | None = None
        self.body = b""
        self.is_over = False  # of a refusal: nothing more of it is wanted
        self._read = b""
        self._interim = 0  # bytes of the answers that came before the one that counts
        self._fields: list[tuple[str, str]] = []
        self._framing: Framing | None = None

    def feed(self, data: bytes) -> bytes:
        """The bytes behind a 101's head. Raises `UpstreamError` (INVALID)."""
        if self._framing is not None:
            self._take(data)
            return b""
        self._read += data
        is_last = False
        while not is_last:
            end = self._read.find(b"\r\n\r\n")
            if self._interim + len(self._read if end < 0 else self._read[:end]) > MAX_HEAD:
                raise invalid("head too long")
            if end < 0:
                return b""
            head, self._read = self._read[: end + 4], self._read[end + 4 :]
            is_last = self._begin(head)
        rest, self._read = self._read, b""
        self._take(rest)
        return rest if self.head is not None and self.head.status == 101 else b""

    def end(self) -> None:
        """The connection ended: that is how some bodies do."""
        self.is_over = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1").lower(), value.decode("latin-1").strip()))

    def _begin(self, head: bytes) -> bool:
        """False for an answer before the answer (1xx)."""
        status, version = self._parse(head)
        headers = tuple(self._fields)
        self._fields = []
        if status == 101:
            self.head = ResponseHead(status, headers)
        elif status < 200:
            self._interim += len(head)
        else:
            answer = judge(status, version, headers, bodiless=False)
            self.head, self._framing = answer.head, answer.framing
        return self.head is not None

    def _parse(self, head: bytes) -> tuple[int, str]:
        parser = httptools.HttpResponseParser(self)
        try:
            parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            pass  # that is what was asked for
        except httptools.HttpParserError:
            raise invalid("head") from None
        return parser.get_status_code(), parser.get_http_version()

    def _take(self, data: bytes) -> None:
        framing = self._framing
        if framing is None or self.is_over:
            return
        if data and not framing.done:
            self.body += framing.feed(data)
        empty = isinstance(framing, FixedLength) and framing.done
        self.is_over = framing.done or empty or len(self.body) > MAX_REFUSAL


def is_accepted(head: ResponseHead, *, key: str, offered: tuple[str, ...]) -> bool:
    """Whether a 101 keeps to what was asked (RFC 6455, section 4.1)."""
    chosen = head.header("sec-websocket-protocol")
    return (
        (head.header("upgrade") or "").lower() == "websocket"
        and "upgrade" in (head.header("connection") or "").lower()
        and head.header("sec-websocket-accept") == accept_of(key)
        and head.header("sec-websocket-extensions") is None
        and (chosen is None or chosen in offered)
    )
