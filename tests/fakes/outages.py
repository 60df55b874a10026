"""A database that goes away while it is in use, and comes back."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import make_url

from tests.fakes import postgres


@asynccontextmanager
async def outage(url: str) -> AsyncIterator[None]:
    """SQLite stays locked by somebody else; PostgreSQL drops all sessions and takes no more."""
    if url.startswith("sqlite"):
        holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")
        holder.close()
        return
    name, outside = make_url(url).database, postgres.url_of("postgres")
    await postgres.execute(
        outside,
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"  # noqa: S608 - a name of ours
        f" WHERE datname = '{name}'",
    )
    yield
    await postgres.execute(outside, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
