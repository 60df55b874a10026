"""The two ends of a socket, as its transport tells them to the few who ask."""

from __future__ import annotations

import socket
from asyncio import trsock
from typing import Any


def tell(known: dict[str, Any], name: str, sock: socket.socket) -> Any:
    """For `get_extra_info`: found when first asked for; a peer that is gone has no name."""
    if name in known:
        return known[name]
    told: Any = None
    try:
        if name == "socket":
            told = trsock.TransportSocket(sock)
        elif name == "peername":
            told = sock.getpeername()
        elif name == "sockname":
            told = sock.getsockname()
    except OSError:
        return None
    if told is not None:
        known[name] = told
    return told
