"""How long a test waits for what comes in milliseconds, before it says that it never came.

So long that no busy machine is taken for a mistake: it is no statement about how fast anything is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

WITHIN = 30.0  # seconds
STEP = 0.002


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until something that has no event of its own is so."""
    for _ in range(round(WITHIN / STEP)):
        if condition():
            return
        await asyncio.sleep(STEP)
    raise AssertionError("it never came true")
