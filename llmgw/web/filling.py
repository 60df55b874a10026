"""A large body, read by the event loop to where it is to lie."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Owner(Protocol):
    """The connection, whose protocol this stands in for."""

    def filled(self) -> None:
        """All that was wanted has come, and nothing beyond it was read."""

    def emptied(self) -> None:
        """Something comes before that: go on as a protocol again, with what has come."""

    def eof_received(self) -> bool | None: ...

    def connection_lost(self, exc: BaseException | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class Filling(asyncio.BufferedProtocol):
    """Fills one buffer; everything else is its owner's."""

    def __init__(self, owner: Owner, buffer: bytearray, at: int) -> None:
        self._owner = owner
        self._view = memoryview(buffer)
        self.at = at  # how much of it is there

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self.at :]

    def buffer_updated(self, nbytes: int) -> None:
        self.at += nbytes
        if self.at == len(self._view):
            self._owner.filled()

    def eof_received(self) -> bool | None:
        self._owner.emptied()
        return self._owner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._owner.pause_writing()

    def resume_writing(self) -> None:
        self._owner.resume_writing()
