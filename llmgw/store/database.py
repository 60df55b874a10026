"""One engine for SQLite or PostgreSQL, set up so that no read-modify-write is ever lost."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, event, make_url, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from llmgw.store.bulk import Bulk
from llmgw.store.errors import StoreError, StoreFault, store_error
from llmgw.store.glance import Glance
from llmgw.store.own_thread import OwnThread
from llmgw.store.schema import META
from llmgw.store.settled import Settled

BUSY_TIMEOUT = 5.0
WAL_PAUSE = 0.02  # seconds
ANSWER_TIMEOUT = 5.0  # of PostgreSQL: to connect, and for one statement
POOL_SIZE = 5
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON")

_READING = "llmgw_reading"
# ValueError and OverflowError: a value that the driver can't put into its statement
_FOREIGN = (
    SQLAlchemyError,
    sqlite3.Error,
    OSError,
    ModuleNotFoundError,
    ValueError,
    OverflowError,
)
_POSTGRES = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})


class Database:
    """An engine and how transactions begin on it. Foreign errors become `StoreError` here."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        keeper: sqlite3.Connection | None = None,
        bulk: Bulk | None = None,
        glances: OwnThread[sqlite3.Connection] | None = None,
    ) -> None:
        """`keeper` holds a database in memory for as long as the process wants it; `bulk` writes
        into a file, and `glances` reads it."""
        self.engine = engine
        self._bulk = bulk
        self._glances = glances
        self._reading = engine.execution_options(**{_READING: True})
        self._keeper = keeper

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits at the end of the block, or not at all."""
        async with _mapped(), self.engine.begin() as connection:
            yield connection

    async def write_settled(self, batch: Sequence[Settled]) -> bool:
        """A transaction of its own; False where there is no short way, and nothing is done."""
        if self._bulk is None:
            return False
        async with _mapped():
            await self._bulk.write(batch)
        return True

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that waits for no writer and makes none wait."""
        async with _mapped(), self._reading.connect() as connection:
            yield connection

    async def glance(self, query: Glance, **values: float) -> list[Sequence[Any]]:
        """The rows of one statement, without a transaction around it."""
        if self._glances is None:
            async with self.read() as connection:
                return list(await connection.execute(query.select, values))
        text, names = query.of(self.engine)
        bound = [values[name] for name in names]
        async with _mapped():
            return await self._glances.run(lambda own: own.execute(text, bound).fetchall())

    async def probe(self) -> None:
        """Find out whether SQLite's file can be opened, before the driver gives it a thread:
        where it can't, that thread ends after everything else, with a traceback."""
        if self.is_sqlite:
            async with _mapped():
                await asyncio.to_thread(_open_and_close, self.engine)

    async def check(self) -> None:
        """Write without a change: a database may answer and yet take nothing."""
        async with self.write() as connection:
            await connection.execute(update(META).values(value=META.c.value))

    async def close(self) -> None:
        await self.engine.dispose()
        for thread in (self._bulk, self._glances):
            if thread is not None:
                await thread.close()
        if self._keeper is not None:
            self._keeper.close()


def connect(url: str) -> Database:
    """Make the engine; nothing is connected yet. Raises `StoreError` for what is no URL."""
    try:
        parsed = make_url(url)
        if parsed.drivername in _POSTGRES:
            return _postgresql(parsed.set(drivername="postgresql+asyncpg"))
        if parsed.drivername in ("sqlite", "sqlite+aiosqlite"):
            return _sqlite(parsed.set(drivername="sqlite+aiosqlite"))
    except _FOREIGN as error:
        raise store_error(error) from None  # its text may quote the URL, with the password
    raise StoreError(StoreFault.OTHER, "it is neither sqlite nor postgresql")


def _postgresql(url: URL) -> Database:
    options = {"timeout": ANSWER_TIMEOUT, "command_timeout": ANSWER_TIMEOUT}
    return Database(create_async_engine(url, pool_size=POOL_SIZE, connect_args=options))


def _sqlite(url: URL) -> Database:
    """In memory one connection serves all in turn: SQLite's shared cache knows no waiting."""
    keeper, size = None, POOL_SIZE
    if url.database in (None, "", ":memory:"):
        name = f"file:llmgw-{secrets.token_hex(8)}?mode=memory&cache=shared"
        keeper, size = sqlite3.connect(name, uri=True), 1
        url = make_url(f"sqlite+aiosqlite:///{name}&uri=true")
    engine = create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"timeout": BUSY_TIMEOUT},
    )
    event.listen(engine.sync_engine, "connect", _set_up_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    if keeper is not None:
        return Database(engine, keeper=keeper)
    open_own = partial(_open_for_a_thread, engine)
    return Database(engine, bulk=Bulk(open_own), glances=OwnThread(open_own, "llmgw-glance"))


def _open_and_close(engine: AsyncEngine) -> None:
    connection = _open_directly(engine)
    try:
        _switch_to_wal(connection)
    finally:
        connection.close()


def _open_for_a_thread(engine: AsyncEngine) -> sqlite3.Connection:
    connection = _open_directly(engine, timeout=BUSY_TIMEOUT, isolation_level=None)
    try:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_directly(engine: AsyncEngine, **more: Any) -> sqlite3.Connection:
    """The same file, without SQLAlchemy and without a thread."""
    arguments, options = engine.dialect.create_connect_args(engine.url)
    opener: Callable[..., sqlite3.Connection] = sqlite3.connect
    return opener(*arguments, **options, **more)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Once for a file, which keeps it. SQLite's own busy timeout does not cover the switch
    (https://www.sqlite.org/wal.html), and two gateways that start together would meet at it.
    """
    give_up = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(WAL_PAUSE)


def _set_up_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """The driver's own transactions are off: they begin too late to read and then write."""
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        for pragma in PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()  # the pool has not got it yet, and its thread would stay
        raise
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Who means to write takes the lock first; a later upgrade fails without waiting."""
    options: Any = connection.get_execution_options()
    connection.exec_driver_sql("BEGIN" if options.get(_READING) else "BEGIN IMMEDIATE")


@asynccontextmanager
async def _mapped() -> AsyncIterator[None]:
    try:
        yield
    except _FOREIGN as error:
        raise store_error(error) from error
