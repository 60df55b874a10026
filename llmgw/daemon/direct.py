"""`recv` and `send` of a non-blocking stream socket, by its descriptor, for the event loop.

In C where it was compiled (`_direct.c`): a third of an event's cost above the kernel's own is in
how Python's socket objects make these two calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

MOST_READ = 64 * 1024  # bytes at once


def _recv(fd: int, /) -> bytes | None:
    """What has come, at most `MOST_READ` bytes; b"": the end; None: nothing. Raises `OSError`."""
    try:
        return os.read(fd, MOST_READ)
    except (BlockingIOError, InterruptedError):
        return None


def _send(fd: int, data: bytes | bytearray | memoryview, /) -> int:
    """How many bytes were taken, maybe none. Raises `OSError`."""
    try:
        return os.write(fd, data)
    except (BlockingIOError, InterruptedError):
        return 0


recv: Callable[[int], bytes | None] = _recv
send: Callable[[int, bytes | bytearray | memoryview], int] = _send
with suppress(ImportError):
    from llmgw.daemon import _direct

    recv, send = _direct.recv, _direct.send
