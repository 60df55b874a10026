"""Whether the peer of a websocket is still there: asked when it was silent for a while."""

from __future__ import annotations

from enum import Enum, auto

PING_EVERY = 20.0  # seconds of silence; proxies and NATs forget connections after 60 or less
GONE_AFTER = 60.0  # seconds of silence, with pings unanswered
PONGS_WAITING = 16  # to a peer that takes nothing; an honest one does not ask more often


class Beat(Enum):
    NOTHING = auto()
    PING = auto()
    GONE = auto()


class Pulse:
    """Told of bytes by `hear`, which is as cheap as can be, and asked now and then."""

    __slots__ = ("_asked", "_heard", "_pongs", "_since")

    def __init__(self, now: float) -> None:
        self._heard = False
        self._since = now
        self._asked = 0
        self._pongs = 0

    def hear(self) -> None:
        self._heard = True

    def answers(self, *, is_stuck: bool) -> bool:
        """Whether a ping is answered: what waits for a peer that takes nothing is bounded."""
        self._pongs = self._pongs + 1 if is_stuck else 0
        return self._pongs <= PONGS_WAITING

    def beat(self, now: float, *, may_end: bool = True) -> Beat:
        """`may_end`: False while nothing is read from the peer, or it takes nothing: then its
        answers cannot be expected."""
        if self._heard or not may_end:
            self._heard = False
            self._since = now
            self._asked = 0
            return Beat.NOTHING
        silence = now - self._since
        if silence >= GONE_AFTER:
            return Beat.GONE
        if silence >= PING_EVERY * (self._asked + 1):
            self._asked += 1
            return Beat.PING
        return Beat.NOTHING
