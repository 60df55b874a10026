"""Whether the process may still open files: without one it takes no client and reaches no node.

The event loop waits in silence while connections can't be accepted, so this is the one that tells.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Callable

log = logging.getLogger("llmgw")

EVERY = 1.0  # seconds
EXHAUSTED = (errno.EMFILE, errno.ENFILE)  # of the process, of the machine


class DescriptorWatch:
    """Logs once when file descriptors run out, and once when there are some again."""

    def __init__(self, *, can_open: Callable[[], bool] | None = None) -> None:
        self._can_open = can_open or can_open_one
        self._are_left = True

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(EVERY)

    def look(self) -> None:
        are_left = self._can_open()
        if are_left == self._are_left:
            return
        self._are_left = are_left
        if are_left:
            log.info("file descriptors left again")
        else:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            log.error("no file descriptors left", extra={"limit": limit})


def can_open_one() -> bool:
    """By opening one: what is counted differs from what the kernel allows."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno not in EXHAUSTED
    return True
