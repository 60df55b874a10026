"""Rows that are written for good: each has an id of its own, so writing it twice changes nothing.

They are what a spool can keep while the database is away.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

Value = str | int | float | bool | None


class RowKind(StrEnum):
    OPEN = "open"  # a request that still runs
    REQUEST = "request"
    ATTEMPT = "attempt"
    PIN = "pin"


class Row(NamedTuple):
    """`values` are the table's columns, in order."""

    kind: RowKind
    values: tuple[Value, ...]
