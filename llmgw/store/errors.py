"""What can be wrong with a database, in one line each, and how the drivers say it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import StrEnum

from sqlalchemy.exc import ArgumentError, DBAPIError

_LONGEST_CHAIN = 8


class StoreFault(StrEnum):
    LOCKED = "locked"
    READ_ONLY = "read_only"
    FULL = "full"
    TOO_NEW = "too_new"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    CORRUPT = "corrupt"
    CONFLICT = "conflict"  # another gateway was faster: the same again may succeed
    OTHER = "other"


OUTAGES = frozenset(
    {
        StoreFault.LOCKED,
        StoreFault.READ_ONLY,
        StoreFault.FULL,
        StoreFault.UNREACHABLE,
        StoreFault.REFUSED,
        StoreFault.CORRUPT,
    }
)
"""Faults of the database; with `OTHER` it is the statement that can't be carried out."""

_LINES = {
    StoreFault.LOCKED: "the database stays locked by another program",
    StoreFault.READ_ONLY: "the database can't be written (read-only)",
    StoreFault.FULL: "the database or its disk is full",
    StoreFault.TOO_NEW: "the database is too new for this program",
    StoreFault.UNREACHABLE: "the database can't be reached",
    StoreFault.REFUSED: "the database refuses this user, password or database name",
    StoreFault.CORRUPT: "the file is damaged or is no SQLite database",
    StoreFault.CONFLICT: "another gateway changed the same rows",
    StoreFault.OTHER: "the database failed",
}

_SQLITE = {
    sqlite3.SQLITE_BUSY: StoreFault.LOCKED,
    sqlite3.SQLITE_LOCKED: StoreFault.LOCKED,
    sqlite3.SQLITE_READONLY: StoreFault.READ_ONLY,
    sqlite3.SQLITE_PERM: StoreFault.READ_ONLY,
    sqlite3.SQLITE_FULL: StoreFault.FULL,
    sqlite3.SQLITE_CANTOPEN: StoreFault.UNREACHABLE,
    sqlite3.SQLITE_IOERR: StoreFault.UNREACHABLE,
    sqlite3.SQLITE_CORRUPT: StoreFault.CORRUPT,
    sqlite3.SQLITE_NOTADB: StoreFault.CORRUPT,
    sqlite3.SQLITE_ERROR: StoreFault.OTHER,
    sqlite3.SQLITE_TOOBIG: StoreFault.OTHER,
    sqlite3.SQLITE_CONSTRAINT: StoreFault.OTHER,
    sqlite3.SQLITE_MISMATCH: StoreFault.OTHER,
    sqlite3.SQLITE_RANGE: StoreFault.OTHER,
}

# https://www.postgresql.org/docs/current/errcodes-appendix.html, the longest match counts
_SQLSTATES = {
    "08": StoreFault.UNREACHABLE,
    "22": StoreFault.OTHER,
    "23": StoreFault.OTHER,
    "25006": StoreFault.READ_ONLY,
    "28": StoreFault.REFUSED,
    "3D": StoreFault.REFUSED,
    "40": StoreFault.CONFLICT,
    "42": StoreFault.OTHER,
    "42501": StoreFault.REFUSED,
    "53": StoreFault.FULL,
    "53300": StoreFault.UNREACHABLE,  # too many connections
    "55000": StoreFault.UNREACHABLE,  # it accepts no connections
    "55P03": StoreFault.LOCKED,
    "57": StoreFault.UNREACHABLE,
    "58": StoreFault.UNREACHABLE,
    "XX001": StoreFault.CORRUPT,
    "XX002": StoreFault.CORRUPT,
}


class StoreError(Exception):
    """The only error that `store/` raises. Its text names the key and never quotes the URL."""

    def __init__(self, fault: StoreFault, detail: str = "") -> None:
        line = f"database.url: {_LINES[fault]}"
        super().__init__(f"{line}: {detail}" if detail else line)
        self.fault = fault

    @property
    def is_outage(self) -> bool:
        return self.fault in OUTAGES


def store_error(error: BaseException) -> StoreError:
    """What a driver's or SQLAlchemy's error means; the name of its class is all that is quoted."""
    for one in _chain(error):
        if isinstance(one, StoreError):
            return one
        fault = _fault_of(one)
        if fault is not None:
            return StoreError(fault, _detail(one))
    fault = StoreFault.UNREACHABLE if isinstance(error, DBAPIError) else StoreFault.OTHER
    return StoreError(fault, type(list(_chain(error))[-1]).__name__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """From the outermost to what the driver raised."""
    one: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if one is None:
            return
        yield one
        one = (one.orig if isinstance(one, DBAPIError) else None) or one.__cause__


def _fault_of(error: BaseException) -> StoreFault | None:
    if isinstance(error, sqlite3.Error):
        return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # low byte: the primary
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        found = [prefix for prefix in _SQLSTATES if state.startswith(prefix)]
        return _SQLSTATES[max(found, key=len)] if found else None
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return StoreFault.UNREACHABLE
    if isinstance(error, (OSError, TimeoutError, ModuleNotFoundError)):
        return StoreFault.UNREACHABLE
    return (
        StoreFault.OTHER if isinstance(error, (ArgumentError, ValueError, OverflowError)) else None
    )


def _detail(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name} is not installed (llmgw[postgres])"
    if isinstance(error, sqlite3.Error):
        name = str(getattr(error, "sqlite_errorname", type(error).__name__))
        return "no such folder, or no permission" if name == "SQLITE_CANTOPEN" else name
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
