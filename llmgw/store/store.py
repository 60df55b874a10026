"""The whole floor, opened and closed as one."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from llmgw import __version__
from llmgw.store.circuits import Circuits
from llmgw.store.database import Database, connect
from llmgw.store.drains import Drains
from llmgw.store.gateways import Gateways
from llmgw.store.migrate import migrate
from llmgw.store.pins import Pins
from llmgw.store.reader import Reader
from llmgw.store.requests import Requests
from llmgw.store.retention import Retention
from llmgw.store.spool import Spool
from llmgw.store.usage import UsageBook
from llmgw.store.writer import Writer


@dataclass(frozen=True, slots=True)
class Store:
    """What a gateway keeps in its database, by subject.

    `writer.run` and `reader.run` (this one several times over, if wanted) are loops for a
    supervisor. `writer.close` comes before their end, `close` after it.
    """

    database: Database
    writer: Writer
    reader: Reader
    circuits: Circuits
    pins: Pins
    requests: Requests
    gateways: Gateways
    drains: Drains
    usage: UsageBook
    retention: Retention

    async def close(self) -> None:
        """Flush what waits, and let go of the database."""
        await self.writer.close()
        await self.database.close()


async def open_database(url: str) -> Database:
    """Connect and migrate. Raises `StoreError`, one clear line."""
    database = connect(url)
    try:
        await database.probe()
        await migrate(database)
        await database.check()
    except BaseException:
        await database.close()
        raise
    return database


async def open_store(url: str, *, state_dir: Path, instance: str) -> Store:
    """`url` as the configuration has it; `state_dir`, absolute, keeps the spool.

    Raises `StoreError`.
    """
    database = await open_database(url)
    writer = Writer(database, Spool(state_dir, instance))
    reader = Reader(database)
    place = f"{socket.gethostname()}:{state_dir}"
    return Store(
        database,
        writer,
        reader,
        Circuits(writer, reader),
        Pins(writer, reader),
        Requests(writer, instance=instance),
        Gateways(writer, instance=instance, place=place, version=__version__),
        Drains(writer, reader),
        UsageBook(reader),
        Retention(writer),
    )
