"""A TCP connection that is made without a task: callbacks alone carry its request later on.

For an address that needs no resolver, without TLS, on a loop that takes a connected socket at
once; whatever else there is to wait for is `connect`'s (`upstream/address.py`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Protocol, cast

from aiohappyeyeballs.types import AddrInfoType

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.address import connect_fault, prepare

Adopt = Callable[[socket.socket, asyncio.BaseProtocol], None]
_UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EAGAIN)


class Dialler(Protocol):
    """Who is to get the connection: a protocol that is told where there will be none."""

    def unreachable(self, fault: UpstreamError) -> None: ...


class Dial:
    """One connect under way. Ends once: the protocol is connected or told, or nobody asks."""

    __slots__ = ("_adopt", "_loop", "_protocol", "_sock", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        adopt: Adopt,
        sock: socket.socket,
        protocol: Dialler,
        within: float,
    ) -> None:
        self._loop = loop
        self._adopt = adopt
        self._sock: socket.socket | None = sock
        self._protocol = protocol
        self._timer = loop.call_later(within, self._time_out)
        loop.add_writer(sock, self._connected)

    def cancel(self) -> None:
        sock = self._end()
        if sock is not None:
            sock.close()

    def _connected(self) -> None:
        sock = self._end()
        if sock is None:
            return
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            sock.close()
            self._protocol.unreachable(connect_fault(OSError(number, os.strerror(number))))
        else:
            self._adopt(sock, cast(asyncio.BaseProtocol, self._protocol))

    def _time_out(self) -> None:
        self.cancel()
        self._protocol.unreachable(UpstreamError(FaultKind.CONNECT, "timeout"))

    def _end(self) -> socket.socket | None:
        sock, self._sock = self._sock, None
        if sock is not None:
            self._timer.cancel()
            self._loop.remove_writer(sock)
        return sock


def adopter() -> Adopt | None:
    """How the running loop takes a connected socket; None: by a coroutine alone."""
    return getattr(asyncio.get_running_loop(), "adopt", None)


def dial(address: AddrInfoType, protocol: Dialler, adopt: Adopt, *, within: float) -> Dial | None:
    """Connect it in `within` seconds. None: it is connected already, as on the same host.

    Raises `OSError` for what can be told at once.
    """
    family, kind, number, _, place = address
    sock = socket.socket(family, kind, number)
    try:
        sock.setblocking(False)
        prepare(sock)
        found = sock.connect_ex(place)
        if found == errno.EINPROGRESS:  # on the same host it is there by now
            found = sock.connect_ex(place)
        if found in _UNDER_WAY:
            return Dial(asyncio.get_running_loop(), adopt, sock, protocol, within)
        if found:
            raise OSError(found, os.strerror(found))
    except BaseException:
        sock.close()
        raise
    adopt(sock, cast(asyncio.BaseProtocol, protocol))
    return None
