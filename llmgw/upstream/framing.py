"""Where the body of an HTTP/1 response ends: strict incremental decoders, values without I/O.

RFC 9112, sections 6 and 7. A decoder is fed what the socket gave, in any cut, and gives the body
bytes back: the bytes up to a flaw or the end are the same however the input was cut.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import ClassVar

MAX_EXTENSION = 1024  # bytes of a chunk extension, which is skipped
MAX_TRAILERS = 8192  # bytes of all trailer fields, which are dropped

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t -~\x80-\xff]{0,%d})?\r\n" % MAX_EXTENSION)
_SIZE_LINE_BEGUN = re.compile(
    rb"(?:[0-9A-Fa-f]{1,15}(?:;[\t -~\x80-\xff]{0,%d})?\r?)?" % MAX_EXTENSION
)
_SMALLEST = 6  # bytes of a chunk that is not the last
_LARGE = 65543  # bytes of a chunk whose size has five digits
_CR, _LF = b"\r\n"
_BEGINS = (3, 4, 5, 6)  # where the data of a chunk begin, by the digits of its size
_MOST_LINES = 8192  # size lines that are kept
_TRAILERS = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n)*\r\n")


class Framing(ABC):
    """One response body. `feed` is not called again once `done` or `flaw` is set."""

    __slots__ = ("done", "flaw", "surplus", "was_chunk")

    until_eof: ClassVar[bool] = False  # an orderly end of the connection makes the body whole

    @property
    def is_between_chunks(self) -> bool:
        """Whether a chunk of the chunked coding comes next."""
        return False

    def __init__(self) -> None:
        self.done = False  # the body has ended, whole
        self.flaw = ""  # what is wrong with the framing, in our words
        self.surplus = False  # bytes came after the end: the connection is out of step
        self.was_chunk = False  # what was fed last was one whole chunk, and nothing else

    @abstractmethod
    def feed(self, data: bytes) -> bytes:
        """The body bytes in `data`, maybe none."""


class FixedLength(Framing):
    """A body of a declared length; 0 is done at once."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        super().__init__()
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        left = self._left - len(data)
        self._left = left
        if left > 0:
            return data
        self.done = True
        if left == 0:
            return data
        self.surplus = True
        return data[:left]


class UntilEof(Framing):
    """A body that the end of the connection delimits."""

    __slots__ = ()

    until_eof = True

    def feed(self, data: bytes) -> bytes:
        return data


class Chunked(Framing):
    """The chunked transfer coding.

    One whole chunk in one read costs one slice, a read inside a big chunk none.
    """

    __slots__ = ("_expects", "_held", "_left")

    def __init__(self) -> None:
        super().__init__()
        self._expects = _Part.SIZE
        self._left = 0  # data bytes that the current chunk still lacks
        self._held = b""  # a piece that was cut, to be read again; bounded

    @property
    def is_between_chunks(self) -> bool:
        return self._expects is _SIZE and not self._held and not self.flaw

    def feed(self, data: bytes) -> bytes:
        self.was_chunk = False
        size = len(data)
        if self._left > size:
            self._left -= size
            return data
        if self._held:
            data, self._held = self._held + data, b""
        elif self._expects is _SIZE and _SMALLEST <= size < _LARGE:
            # An event a chunk, a chunk a read: the size line can be nothing else then.
            begin = _BEGINS[(size > 21) + (size > 262) + (size > 4103)]
            end = size - 2
            if (
                data[end] == _CR
                and data[end + 1] == _LF
                and _size_line(end - begin) == data[:begin]
            ):
                self.was_chunk = True
                return data[begin:end]
        parts: list[bytes] = []
        at = 0
        while at < len(data) and not (self.done or self.flaw):
            match self._expects:
                case _Part.SIZE:
                    at = self._begin(data, _take_whole_chunks(data, at, parts))
                case _Part.DATA:
                    at = self._take(data, at, parts)
                case _Part.CRLF:
                    at = self._close_chunk(data, at)
                case _Part.TRAILERS:
                    at = self._end(data, at)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _begin(self, data: bytes, at: int) -> int:
        if at == len(data):
            return at
        line = _SIZE_LINE.match(data, at)
        if line is None:
            return self._hold(data, at, "chunk size", cut=_SIZE_LINE_BEGUN.fullmatch(data, at))
        self._left = int(line[1], 16)
        self._expects = _Part.DATA if self._left else _Part.TRAILERS
        return line.end()

    def _take(self, data: bytes, at: int, parts: list[bytes]) -> int:
        part = data[at : at + self._left]
        parts.append(part)
        self._left -= len(part)
        if self._left:
            return len(data)
        self._expects = _Part.CRLF
        return self._close_chunk(data, at + len(part))

    def _close_chunk(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self._expects = _Part.SIZE
            return at + 2
        return self._hold(data, at, "chunk end", cut=data[at:] in (b"", b"\r"))

    def _end(self, data: bytes, at: int) -> int:
        """Drop the trailers; what follows them belongs to no answer."""
        trailers = _TRAILERS.match(data, at)
        if trailers is None or trailers.end() - at > MAX_TRAILERS:
            cut = len(data) - at <= MAX_TRAILERS and not _ends_trailers(data[at:])
            return self._hold(data, at, "trailers", cut=cut)
        self.done = True
        self.surplus = trailers.end() < len(data)
        return trailers.end()

    def _hold(self, data: bytes, at: int, what: str, *, cut: object) -> int:
        """Keep a piece that the end of the read cut; anything else is a flaw."""
        if cut:
            self._held = data[at:]
        else:
            self.flaw = what
        return len(data)


class _Part(Enum):
    """What a chunked body goes on with."""

    SIZE = auto()
    DATA = auto()
    CRLF = auto()
    TRAILERS = auto()


_SIZE = _Part.SIZE


_size_lines: dict[int, bytes] = {}


def _size_line(size: int) -> bytes:
    """As most servers write it."""
    line = _size_lines.get(size)
    if line is None:
        line = b"%x\r\n" % size
        if len(_size_lines) < _MOST_LINES:
            _size_lines[size] = line
    return line


def _take_whole_chunks(data: bytes, at: int, parts: list[bytes]) -> int:
    """The common case, without a change of state: chunks that lie whole in one read."""
    while (line := _SIZE_LINE.match(data, at)) is not None:
        begin = line.end()
        end = begin + int(line[1], 16)
        if begin == end or not data.startswith(b"\r\n", end):
            break
        parts.append(data[begin:end])
        at = end + 2
    return at


def _ends_trailers(rest: bytes) -> bool:
    return rest.startswith(b"\r\n") or b"\r\n\r\n" in rest
