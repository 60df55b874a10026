"""The head of a response: read by llhttp, nothing lenient, and judged by RFC 9112, section 6.

A head whose lines are all of a plain kind is read from memory (`familiar.py`): with the same
result but for the line of its length, at a fraction of the cost.
The parser sees the head alone; the body is walked by `framing.py`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import httptools

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.fields import END, sized
from llmgw.core.http import ResponseHead
from llmgw.core.types import Headers
from llmgw.upstream.familiar import familiar
from llmgw.upstream.framing import Chunked, FixedLength, Framing, UntilEof

MAX_HEAD = 64 * 1024  # bytes of the status line and all header lines, interim answers included
MAX_FIELDS = 256
MAX_INTERIM = 16  # 1xx answers before the final one
CACHED_NAME = 64  # longer header names are not worth keeping

WITHOUT_BODY = (204, 304)  # RFC 9110, section 6.4.1
_VERSIONS = ("1.1", "1.0")
_FRAMING = frozenset(("content-length", "transfer-encoding", "connection"))
_LENGTH = re.compile("[0-9]{1,18}")  # llhttp takes thousands of leading zeros, int() does not


class Answer(NamedTuple):
    """A final response head, how its body is framed, and whether the connection outlives it."""

    head: ResponseHead
    framing: Framing
    keeps_alive: bool


class HeadReader:
    """Reads one final response head in any cut; 1xx answers before it are skipped.

    `answer` is set once the head is whole. Raises `UpstreamError` (INVALID).
    """

    __slots__ = (
        "_bodiless",
        "_fields",
        "_interim",
        "_parser",
        "_size",
        "_tail",
        "answer",
    )

    def __init__(self, method: str) -> None:
        self.answer: Answer | None = None
        self._bodiless = method == "HEAD"
        self._interim = 0
        self._size = 0
        self._begin()

    def feed(self, data: bytes) -> bytes:
        """Read on; the bytes behind the head are returned once `answer` is set."""
        while data and self.answer is None:
            data = self._read(data)
        return data

    def _begin(self) -> None:
        self._fields: list[tuple[str, str]] = []
        self._tail = b""
        self._parser: httptools.HttpResponseParser | None = None  # made where it is needed

    def _read(self, data: bytes) -> bytes:
        if not self._size:
            self.answer, rest = read_at_once(data, bodiless=self._bodiless)
            if self.answer is not None:
                return rest
        if not self._tail and not data.startswith(b"H"):
            raise invalid("status line")  # llhttp would take RTSP/, ICE/ and leading empty lines
        seam = self._tail + data if self._tail else data
        end = seam.find(END)
        cut = end + len(END) - len(self._tail) if end >= 0 else len(data)
        self._size += cut
        if self._size > MAX_HEAD:
            raise invalid("head too long")
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
        self._parse(self._parser, data[:cut])
        if end < 0:
            self._tail = seam[-len(END) + 1 :]
            return b""
        self._finish(self._parser)
        return data[cut:]

    def _parse(self, parser: httptools.HttpResponseParser, data: bytes) -> None:
        flaw = ""
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            flaw = "unasked upgrade"
        except httptools.HttpParserError:
            flaw = "head"
        if flaw:  # raised here: the parser's error may quote the upstream, and is no context
            raise invalid(flaw)
        if len(self._fields) > MAX_FIELDS:
            raise invalid("too many header fields")

    def _finish(self, parser: httptools.HttpResponseParser) -> None:
        status = parser.get_status_code()
        version = parser.get_http_version()
        if version not in _VERSIONS or not 100 <= status <= 599 or status == 101:
            raise invalid("status line")
        if status >= 200:
            self.answer = judge(status, version, tuple(self._fields), bodiless=self._bodiless)
            return
        self._interim += 1
        if self._interim > MAX_INTERIM:
            raise invalid("too many interim answers")
        self._begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        known = _lower(name) if len(name) <= CACHED_NAME else name.decode("latin-1").lower()
        self._fields.append((known, value.rstrip(b" \t").decode("latin-1")))


def read_at_once(data: bytes, *, bodiless: bool = False) -> tuple[Answer | None, bytes]:
    """A whole head of the usual kind and the bytes behind it, without a parser."""
    end = data.find(END)
    if not 0 <= end <= MAX_HEAD:
        return None, data
    rest, length = sized(data, end)
    known = familiar(rest)
    if known is None or (known.chunked and length is not None):
        return None, data
    status, headers, chunked = known
    framing: Framing
    if bodiless or status in WITHOUT_BODY:
        length, framing = 0, FixedLength(0)
    elif chunked:
        framing = Chunked()
    elif length is None:
        return None, data
    else:
        framing = FixedLength(length)
    return Answer(ResponseHead(status, headers, length), framing, True), data[end + len(END) :]


def judge(status: int, version: str, headers: Headers, *, bodiless: bool) -> Answer:
    """Tell how the body is framed (RFC 9112, section 6.3) and if the connection persists."""
    lengths, codings, options = [], [], ""
    for name, value in headers:
        if name not in _FRAMING:
            continue
        if name == "content-length":
            lengths.append(value)
        elif name == "transfer-encoding":
            codings.append(value.lower())
        else:
            options += f",{value.lower()}"
    keeps_alive = _keeps_alive(version, options)
    length = _length(lengths)
    if codings and (lengths or codings != ["chunked"] or version == "1.0"):
        raise invalid("transfer-encoding")
    if bodiless or status in WITHOUT_BODY:
        return Answer(ResponseHead(status, headers, 0), FixedLength(0), keeps_alive)
    if codings:
        return Answer(ResponseHead(status, headers), Chunked(), keeps_alive)
    if length is None:
        return Answer(ResponseHead(status, headers), UntilEof(), keeps_alive=False)
    return Answer(ResponseHead(status, headers, length), FixedLength(length), keeps_alive)


def invalid(detail: str) -> UpstreamError:
    return UpstreamError(FaultKind.INVALID, detail)


def _length(values: list[str]) -> int | None:
    if not values:
        return None
    if len(values) > 1 or not _LENGTH.fullmatch(values[0]):
        raise invalid("content-length")
    return int(values[0])


def _keeps_alive(version: str, options: str) -> bool:
    """RFC 9112, section 9.3."""
    if not options:
        return version == "1.1"
    tokens = {token.strip() for token in options.split(",")}
    return "close" not in tokens and (version == "1.1" or "keep-alive" in tokens)


@lru_cache(maxsize=512)
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()
