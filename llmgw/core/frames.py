"""Websocket frames as bytes, and messages as values (RFC 6455, sections 5 and 7)."""

from __future__ import annotations

import codecs
import struct
from dataclasses import dataclass, field
from enum import IntEnum


class Opcode(IntEnum):
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class CloseCode(IntEnum):
    OK = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    NONE_GIVEN = 1005  # never on the wire: the peer's close frame had no code
    ABNORMAL = 1006  # never on the wire: the connection ended without a close frame
    INVALID_TEXT = 1007
    POLICY_VIOLATION = 1008
    TOO_BIG = 1009
    INTERNAL_ERROR = 1011


MAX_REASON = 123  # bytes: a control frame carries 125, two of them are the code
_UNSENDABLE = frozenset({1004, 1005, 1006, 1015})  # RFC 6455, section 7.4.1
_CODES = range(1000, 5000)  # the others have no meaning (RFC 6455, section 7.4.2)
_PIECE = 64 * 1024  # bytes of a long text that are decoded at a time, to see whether they can be

MASK_BYTES = 4
_FIN = 0x80
_MASKED = 0x80
_SHORT = 126  # from here on two bytes of length follow
_LONG = 0x10000  # from here on eight


@dataclass(frozen=True, slots=True)
class Message:
    """One whole message, however it was cut into frames."""

    data: bytes = field(repr=False)
    is_text: bool = True


@dataclass(frozen=True, slots=True)
class Closed:
    """The websocket has ended: by the peer's close frame, by ours, or by neither (1006)."""

    code: int
    reason: str = field(default="", repr=False)
    broken: bool = False  # the peer broke the protocol: the code is what it was told


def frame_head(opcode: Opcode, size: int) -> bytes:
    """What stands before the payload of a whole message that is not masked."""
    first = _FIN | opcode
    if size < _SHORT:
        return bytes((first, size))
    if size < _LONG:
        return struct.pack(">BBH", first, 126, size)
    return struct.pack(">BBQ", first, 127, size)


def control_frame(opcode: Opcode, payload: bytes = b"", *, mask: bytes | None = None) -> bytes:
    """A ping, pong or close; `mask` (4 bytes) for a client's. Payloads are short by nature."""
    if mask is None:
        return bytes((_FIN | opcode, len(payload))) + payload
    hidden = bytes(one ^ mask[at % 4] for at, one in enumerate(payload))
    return bytes((_FIN | opcode, _MASKED | len(payload))) + mask + hidden


def close_payload(code: int, reason: str = "") -> bytes:
    """Nothing for a code that must not be sent; a reason that is too long is cut."""
    if code in _UNSENDABLE:
        return b""
    short = reason.encode()[:MAX_REASON].decode(errors="ignore").encode()
    return struct.pack(">H", code) + short


def is_close_code(code: int) -> bool:
    """Whether a close frame may carry it."""
    return code in _CODES and code not in _UNSENDABLE


def is_text(data: bytes) -> bool:
    """Whether it is UTF-8, as all of a text message has to be (RFC 6455, section 8.1)."""
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), _PIECE):
            decoder.decode(data[at : at + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def carried_over(closed: Closed) -> Closed:
    """How the client of a relay is told of the upstream's end: one without a close frame, or by
    a broken protocol, is an error there."""
    if closed.broken or closed.code == CloseCode.ABNORMAL:
        return Closed(CloseCode.INTERNAL_ERROR)
    return closed


class MaskCheck:
    """Walks over the frames of a client in any cut: each has to be masked (RFC 6455, 5.1)."""

    __slots__ = ("_head", "_left")

    def __init__(self) -> None:
        self._head = b""  # the first bytes of a frame whose length is not whole yet
        self._left = 0  # bytes of the frame that are still to come

    def passes(self, data: bytes) -> bool:
        data, at = self._head + data, self._left
        while at + 2 <= len(data):
            second = data[at + 1]
            if second < _MASKED:
                return False
            size, longer = _size_of(second - _MASKED)
            start = at + 2 + longer
            if start > len(data):
                break
            size = int.from_bytes(data[at + 2 : start], "big") if longer else size
            at = start + MASK_BYTES + size
        self._head = data[at:]
        self._left = max(0, at - len(data))
        return True


def _size_of(stated: int) -> tuple[int, int]:
    """The payload's size, or how many bytes of it follow."""
    match stated:
        case 126:
            return 0, 2
        case 127:
            return 0, 8
        case _:
            return stated, 0
