"""The inserts of rows, compiled once for each kind of database and run on plain tuples.

A row is written by its own id, so that a repetition changes nothing. A request's final row takes
the place of its open one, also where another gateway had closed that for lost.
"""

from __future__ import annotations

from functools import cache
from typing import Any, assert_never

from sqlalchemy import Table, bindparam, or_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.store.rows import RowKind, Value
from llmgw.store.schema import ATTEMPTS, PINS, REQUESTS

_KNOWN_AT_THE_END = (
    *("assignment", "outcome", "status", "retry_count", "ended_at"),
    *("tokens_in", "tokens_out", "tokens_cached", "closed_by"),
)
"""What an open row says of the rest is true for good: no index by it has to change."""

Insert = sqlite.Insert | postgresql.Insert


async def insert_rows(
    connection: AsyncConnection, kind: RowKind, values: list[tuple[Value, ...]]
) -> None:
    statement = _compiled(kind, connection.dialect.name, connection.dialect.paramstyle)
    await connection.exec_driver_sql(statement, values)


def insert_from(kind: RowKind, select: str) -> str:
    """The same statement for SQLite, with the values of many rows from a select."""
    statement = sqlite_insert(kind)
    start, end = statement.index(" VALUES (") + 1, statement.index(" ON CONFLICT")
    return statement[:start] + select + statement[end:]


def sqlite_insert(kind: RowKind) -> str:
    """For the driver itself."""
    return _compiled(kind, "sqlite", "qmark")


def insert_into(connection: AsyncConnection, table: Table) -> Insert:
    """An insert that knows `on_conflict_*`, which both databases have."""
    return _insert(connection.dialect.name, table)


@cache
def _compiled(kind: RowKind, name: str, paramstyle: Any) -> str:
    kinds: dict[str, type[DefaultDialect]] = {"sqlite": SQLiteDialect, "postgresql": PGDialect}
    dialect = kinds[name](paramstyle=paramstyle)
    return str(_statement(kind, name).compile(dialect=dialect))


def _statement(kind: RowKind, name: str) -> Insert:
    match kind:
        case RowKind.OPEN:
            return _all_columns(name, REQUESTS).on_conflict_do_nothing()
        case RowKind.REQUEST:
            return _final_request(name)
        case RowKind.ATTEMPT:
            return _all_columns(name, ATTEMPTS).on_conflict_do_nothing()
        case RowKind.PIN:
            return _newer_pin(name)
        case _:
            assert_never(kind)


def _final_request(name: str) -> Insert:
    insert = _all_columns(name, REQUESTS)
    return insert.on_conflict_do_update(
        index_elements=[REQUESTS.c.id],
        set_={name: insert.excluded[name] for name in _KNOWN_AT_THE_END},
        where=or_(REQUESTS.c.ended_at.is_(None), REQUESTS.c.closed_by.is_not(None)),
    )


def _newer_pin(name: str) -> Insert:
    insert = _all_columns(name, PINS)
    return insert.on_conflict_do_update(
        index_elements=[PINS.c.id],
        set_={"assignment": insert.excluded.assignment, "until": insert.excluded.until},
        where=PINS.c.until < insert.excluded.until,
    )


def _all_columns(name: str, table: Table) -> Insert:
    return _insert(name, table).values({one.name: bindparam(one.name) for one in table.c})


def _insert(name: str, table: Table) -> Insert:
    return sqlite.insert(table) if name == "sqlite" else postgresql.insert(table)
