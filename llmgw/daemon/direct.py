"""What the event loop asks of the kernel by descriptors.

In C where it was compiled (`_direct.c`): a third of an event's cost above the kernel's own is in
how Python's socket objects and selectors make these calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

MOST_READ = 64 * 1024  # bytes at once
EVENT_BITS = 16  # of what `wait` gives: below the descriptor stand what is ready, as in epoll(7)

Bytes = bytes | bytearray | memoryview


def _recv(fd: int, /) -> bytes | None:
    """What has come, at most `MOST_READ` bytes; b"": the end; None: nothing. Raises `OSError`."""
    try:
        return os.read(fd, MOST_READ)
    except (BlockingIOError, InterruptedError):
        return None


def _send(fd: int, data: Bytes, /) -> int:
    """How many bytes were taken, maybe none. Raises `OSError`."""
    try:
        return os.write(fd, data)
    except (BlockingIOError, InterruptedError):
        return 0


recv: Callable[[int], bytes | None] = _recv
send: Callable[[int, Bytes], int] = _send

Carried = bytes | int | tuple[int, bytes] | None

carry: Callable[[int, int, bytearray, int], Carried] | None = None
"""`carry(fd, to, kept, most)`: read `fd`, and if what came are whole chunks (RFC 9112, section
7.1) of an event stream that do not end it, send them to the socket `to` as they came, and append
their data to `kept`, which holds `most` bytes. Gives how many bytes of data have gone so, maybe
with what `to` did not take; else, as `recv`, the bytes that came, which went nowhere. It does
what a framing, `Tail.take` and a write do together. Raises `OSError` of `fd`."""

wait: Callable[[int, float, int], list[int]] | None = None
"""`wait(epoll, seconds, most)`: who is ready, each as `descriptor << EVENT_BITS | events`, after
`seconds` at the latest (none: at once; less than none: whenever). Raises `OSError`."""

with suppress(ImportError):
    from llmgw.daemon import _direct

    carry, recv, send, wait = _direct.carry, _direct.recv, _direct.send, _direct.wait
