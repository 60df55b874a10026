"""How long a test waits for what comes in milliseconds, before it says that it never came.

So long that no busy machine is taken for a mistake: it is no statement about how fast anything is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable

WITHIN = 30.0  # seconds
STEP = 0.002


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until something that has no event of its own is so; it may be awaited."""
    loop = asyncio.get_running_loop()
    end = loop.time() + WITHIN
    while loop.time() < end:
        found = condition()
        if await found if isawaitable(found) else found:
            return
        await asyncio.sleep(STEP)
    raise AssertionError("it never came true")
