"""What a piece of work costs, counted instead of timed: the same on any machine, however busy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType, FunctionType
from typing import Any


def calls(
    work: Callable[..., object], *args: Any, of: FunctionType | None = None, **options: Any
) -> int:
    """How many functions it calls, each turn of a generator and what is written in C included;
    `of`: how often that one alone.
    """
    count = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        if of is not None:
            count += event == "call" and frame.f_code is of.__code__
        else:
            count += event in ("call", "c_call")

    collects = gc.isenabled()
    gc.disable()  # what it calls when garbage is collected is none of the work
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work(*args, **options)
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def grows_evenly(costs: list[int]) -> bool:
    """Whether sizes that are as far from each other cost as much more each time."""
    steps = {after - before for before, after in pairwise(costs)}
    return len(steps) == 1
