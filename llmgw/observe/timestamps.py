"""The time of a log line: UTC, ISO 8601, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

MILLISECONDS: Final = tuple(f".{number:03}Z" for number in range(1000))


def timestamp(created: float) -> str:
    """Of unix seconds."""
    second = int(created)
    return date_and_time(second) + MILLISECONDS[int((created - second) * 1000)]


@lru_cache(maxsize=2)
def date_and_time(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
