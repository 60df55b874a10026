"""How long a test waits for what comes in milliseconds, before it says that it never came.

So long that no busy machine is taken for a mistake: it is no statement about how fast anything is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable

WITHIN = 30.0  # seconds
STEP = 0.002
LOOKS = 100  # that find no change in what has come to rest


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


async def at_rest(measure: Callable[[], int]) -> int:
    """What a number comes to that nobody tells to be the last. Looks are counted and not time: in
    between two of them this process may have stood still.
    """
    found, looks = measure(), 0

    def is_at_rest() -> bool:
        nonlocal found, looks
        before, found = found, measure()
        looks = looks + 1 if found == before else 0
        return looks == LOOKS

    await until(is_at_rest)
    return found
