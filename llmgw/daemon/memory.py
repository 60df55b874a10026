"""How the process holds its memory: settings of the allocator and of the garbage collector.

Both are made for programs that do not allocate the same few objects again and again.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

# mallopt(3): pages that a large body has used stay with the process for the next one, which
# would else fault each of them in again. At most `KEPT_FREE` bytes are held that way.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
KEPT_FREE = 16 * 1024 * 1024
TOP_PAD = 1024 * 1024
MMAP_FROM = 4 * 1024 * 1024

# Objects of a request die by their reference counts. Cycles are rare, so they are looked for
# seldom, and never among what lives as long as the process.
THRESHOLDS = (50_000, 20, 50)


def tune_allocator() -> None:
    """Before there are large bodies. Where the C library is another than glibc: nothing."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in (
            (M_TRIM_THRESHOLD, KEPT_FREE),
            (M_TOP_PAD, TOP_PAD),
            (M_MMAP_THRESHOLD, MMAP_FROM),
        ):
            mallopt(ctypes.c_int(option), ctypes.c_int(value))


def settle_heap() -> None:
    """Once everything that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
