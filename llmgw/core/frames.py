"""Websocket frames as bytes, and messages as values (RFC 6455, sections 5 and 7)."""

from __future__ import annotations

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
    UNSUPPORTED_DATA = 1003
    NONE_GIVEN = 1005  # never on the wire: the peer's close frame had no code
    ABNORMAL = 1006  # never on the wire: the connection ended without a close frame
    POLICY_VIOLATION = 1008
    TOO_BIG = 1009
    INTERNAL_ERROR = 1011


MAX_REASON = 123  # bytes: a control frame carries 125, two of them are the code
_UNSENDABLE = frozenset({1004, 1005, 1006, 1015})  # RFC 6455, section 7.4.1

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


def carried_over(closed: Closed) -> Closed:
    """How the other side of a relay is closed: an end without a close frame is an error there."""
    if closed.code == CloseCode.ABNORMAL:
        return Closed(CloseCode.INTERNAL_ERROR)
    return closed
