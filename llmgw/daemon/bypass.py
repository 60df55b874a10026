"""From one socket to another, past both their protocols: for what nobody need look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from llmgw.daemon.direct import Bytes, carry, recv

_carry: Final = carry
_recv: Final = recv


class Outlet(ABC):
    """Where a way leads to."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.writes_now = True  # nothing waits before what is written, nor forbids it

    @abstractmethod
    def wait_to_write(self, rest: Bytes) -> None:
        """The socket has taken no more than what came before it."""


class Bypass:
    """One way: whole chunks of an event stream, up to the one that may end it."""

    def __init__(self, to: Outlet, kept: bytearray, most: int) -> None:
        self._to = to
        self._kept = kept
        self._most = most  # bytes in `kept`
        self.passed = 0  # bytes of data
        self.moved = False

    def carry(self, fd: int) -> bytes | None:
        """What has come at `fd` and did not go this way, as `direct.recv`. Raises `OSError`."""
        to = self._to
        if _carry is None or not to.writes_now:
            return _recv(fd)
        came = _carry(fd, to.fd, self._kept, self._most)
        if came is None or isinstance(came, bytes):
            return came
        self.moved = True
        if isinstance(came, int):
            self.passed += came
        else:
            self.passed += came[0]
            to.wait_to_write(came[1])
        return None
