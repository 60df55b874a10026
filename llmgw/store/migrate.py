"""Bring a database to the tables that this program knows, once, however many start at a time.

Migrations only add, so a program also serves a newer database, as long as that does not name a
newer program as the oldest one it still serves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw import __version__
from llmgw.store.database import Database
from llmgw.store.errors import StoreError, StoreFault

REVISION = "0001"  # the newest of migrations/versions: four digits that grow
MIGRATIONS = Path(__file__).with_name("migrations")
LOCK = 0x6C6C6D6777  # PostgreSQL's advisory locks are told apart by a number: "llmgw"

_TABLES = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'",
    # not to_regclass: it may remember from before the lock that there was no such table
    "postgresql": "SELECT 1 FROM pg_class WHERE relname = 'meta' AND pg_table_is_visible(oid)",
}
_FOUND = "SELECT version_num, value FROM llmgw_revision, meta WHERE name = 'oldest_program'"


class Found(NamedTuple):
    revision: str
    oldest_program: str


async def migrate(database: Database) -> None:
    """Raises `StoreError`."""
    async with database.read() as connection:
        found = await _find(connection)
    if found is None or found.revision < REVISION:
        async with database.write() as connection:
            await _lock(connection)
            found = await _find(connection)  # another process may have been faster
            if found is None or found.revision < REVISION:
                await connection.run_sync(_upgrade)
                found = await _find(connection)
    if found is None or _numbers(found.oldest_program) > _numbers(__version__):
        oldest = found.oldest_program if found else "?"
        raise StoreError(StoreFault.TOO_NEW, f"{__version__}, it needs at least {oldest}")


async def _find(connection: AsyncConnection) -> Found | None:
    """None: a database without our tables."""
    if (await connection.execute(text(_TABLES[connection.dialect.name]))).first() is None:
        return None
    row = (await connection.execute(text(_FOUND))).first()
    return None if row is None else Found(*row)


async def _lock(connection: AsyncConnection) -> None:
    """SQLite's transaction has the lock already."""
    if connection.dialect.name == "postgresql":
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")


def _numbers(version: str) -> tuple[int, ...]:
    """The release part, "0.10.1.dev3" as (0, 10, 1)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, release.group().split("."))) if release else ()
