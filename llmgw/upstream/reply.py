"""A small bounded answer to a GET: bytes in, in any cut, and a reply out.

llhttp reads head and body alike, nothing lenient. One reader serves a connection for its life.
"""

from __future__ import annotations

from typing import NamedTuple

import httptools

MAX_HEAD = 64 * 1024
MAX_INTERIM = 16  # 1xx answers before the final one

_FRAMING = (b"content-length", b"transfer-encoding")
_CODING = b"content-encoding"
_LENGTHS = {len(name) for name in (*_FRAMING, _CODING)}


class Reply(NamedTuple):
    """A status and the body, or as much of it as may be read."""

    status: int
    body: bytes
    is_whole: bool
    coding: str = ""  # of the body, lower case


class ReplyReader:
    """`reply` is set once the answer has ended, or is longer than may be read."""

    __slots__ = (
        "_body",
        "_coding",
        "_excess",
        "_interim",
        "_is_framed",
        "_left",
        "_parser",
        "has_begun",
        "has_head",
        "is_flawed",
        "keeps_alive",
        "reply",
    )

    def __init__(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.expect(0)

    def expect(self, max_bytes: int) -> None:
        """The next answer, its body read up to so many bytes."""
        self.reply: Reply | None = None
        self.has_begun = False  # a byte came
        self.has_head = False  # that of the final answer
        self.is_flawed = False  # it is not HTTP
        self.keeps_alive = False
        self._body: list[bytes] = []
        self._left = max_bytes
        self._excess = 0  # how many bytes more came around the body than in it
        self._interim = 0
        self._coding = ""
        self._is_framed = False

    def feed(self, data: bytes) -> None:
        if self._parser is None or not (self.has_begun or data.startswith(b"H")):
            self.is_flawed = True  # llhttp would take RTSP/, ICE/ and leading empty lines
            return
        self.has_begun = True
        self._excess += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.is_flawed = self.reply is None
            self.keeps_alive = False
        if self._excess > MAX_HEAD or self._interim > MAX_INTERIM:
            self.is_flawed = True

    def end(self) -> None:
        """The connection was closed in order, which is how some bodies end."""
        if self.has_head and not self._is_framed and self.reply is None:
            self._complete(is_whole=True)

    def close(self) -> None:
        """Nothing more will come: the parser and its target hold each other."""
        self._parser = None

    # --- the parser's side

    def on_message_begin(self) -> None:
        if self.reply is not None:  # another answer, which nobody asked for
            self.keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) not in _LENGTHS:
            return
        known = name.lower()
        if known in _FRAMING:
            self._is_framed = True
        elif known == _CODING:
            self._coding = value.decode("latin-1").strip().lower()

    def on_headers_complete(self) -> None:
        self.has_head = self._parser is not None and self._parser.get_status_code() >= 200

    def on_body(self, data: bytes) -> None:
        self._excess -= 2 * len(data)
        if self.reply is None:
            self._left -= len(data)
            self._body.append(data if self._left >= 0 else data[: self._left])
            if self._left < 0:
                self._complete(is_whole=False)

    def on_message_complete(self) -> None:
        if self.reply is not None or self._parser is None:
            return
        if self.has_head:
            self.keeps_alive = self._parser.should_keep_alive()
            self._complete(is_whole=True)
        else:
            self._interim += 1
            self._coding = ""
            self._is_framed = False

    def _complete(self, *, is_whole: bool) -> None:
        body = self._body
        joined = body[0] if len(body) == 1 else b"".join(body)
        self.reply = Reply(self._status(), joined, is_whole, self._coding)

    def _status(self) -> int:
        return 0 if self._parser is None else self._parser.get_status_code()
