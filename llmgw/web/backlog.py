"""What the kernel knows of a socket that nobody reads."""

from __future__ import annotations

import asyncio
import select
import socket

_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_left(transport: asyncio.BaseTransport) -> bool:
    """Has the peer shut its sending side or reset, even behind bytes that were not read?"""
    sock = transport.get_extra_info("socket")
    return sock is not None and bool(_poll(sock.fileno(), select.POLLRDHUP) & _GONE)


def has_waiting(listener: socket.socket) -> bool:
    """Do connections wait to be accepted?"""
    return bool(_poll(listener.fileno(), select.POLLIN) & select.POLLIN)


def _poll(descriptor: int, events: int) -> int:
    if descriptor < 0:
        return select.POLLNVAL
    poll = select.poll()
    poll.register(descriptor, events)
    return next((found for _, found in poll.poll(0)), 0)
