"""The same tests on both databases."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from llmgw.store.store import Store, open_database, open_store
from tests.fakes import postgres

SQLITE = "sqlite"
POSTGRESQL = "postgresql"


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of this test's own."""
    if request.param == POSTGRESQL:
        return postgres.new_database()
    (tmp_path / "llmgw.db").write_bytes(_migrated_file())
    return f"sqlite:///{tmp_path}/llmgw.db"


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == POSTGRESQL:
        return postgres.new_database(migrated=False)
    return f"sqlite:///{tmp_path}/llmgw.db"


@asynccontextmanager
async def running(url: str, state_dir: Path, instance: str = "one") -> AsyncIterator[Store]:
    """A store whose tasks run."""
    store = await open_store(url, state_dir=state_dir, instance=instance)
    reader = asyncio.create_task(store.reader.run())
    writer = asyncio.create_task(store.writer.run())
    try:
        yield store
        await store.writer.close()
        await writer
    finally:
        for task in (reader, writer):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await store.close()


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with running(url, tmp_path) as store:
        yield store


@cache
def _migrated_file() -> bytes:
    """Migrated once: a test that begins with it saves the time."""

    async def make(path: Path) -> None:
        await (await open_database(f"sqlite:///{path}")).close()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "llmgw.db"
        asyncio.run(make(path))
        return path.read_bytes()
