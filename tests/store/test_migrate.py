"""Databases at start: made once, added to, and refused in one clear line."""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from llmgw.store import migrate as migrate_module
from llmgw.store.database import connect
from llmgw.store.errors import StoreError, StoreFault
from llmgw.store.migrate import _numbers, migrate
from llmgw.store.schema import METADATA
from llmgw.store.store import open_database
from tests.fakes import postgres
from tests.fakes.statements import counted_statements

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("llmgw.store.database.BUSY_TIMEOUT", 0.05)


async def fault_of(url: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await (await open_database(url)).close()
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("database.url: ")
    return caught.value


async def run(url: str, *statements: str) -> None:
    database = connect(url)
    async with database.write() as connection:
        for statement in statements:
            await connection.execute(text(statement))
    await database.close()


async def test_migrations_make_the_tables_that_the_program_knows(empty_url):
    database = await open_database(empty_url)
    async with database.read() as connection:
        made = await connection.run_sync(_shape)
    await database.close()

    assert made == {
        table.name: (
            [(column.name, column.nullable) for column in table.columns],
            sorted(index.name for index in table.indexes),
        )
        for table in METADATA.sorted_tables
    }


async def test_a_database_of_this_program_is_read_with_two_queries(url):
    database = connect(url)
    await migrate(database)

    with counted_statements(database) as statements:
        await migrate(database)

    await database.close()
    assert len(statements) == 2


async def test_alembic_is_not_loaded_where_nothing_is_to_be_done(tmp_path):
    url = f"sqlite:///{tmp_path}/llmgw.db"
    await (await open_database(url)).close()
    script = (
        "import asyncio, sys\n"
        "from llmgw.store.store import open_database\n"
        "async def main():\n"
        f"    await (await open_database({url!r})).close()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )

    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )

    assert (await child.communicate())[0].strip() == b"False"


async def test_of_two_processes_one_migrates(empty_url):
    script = (
        "import asyncio\n"
        "from llmgw.store import migrate\n"
        "from llmgw.store.store import open_database\n"
        "upgrade, made = migrate._upgrade, []\n"
        "migrate._upgrade = lambda connection: made.append(1) or upgrade(connection)\n"
        "async def main():\n"
        f"    await (await open_database({empty_url!r})).close()\n"
        "asyncio.run(main())\n"
        "print(len(made))\n"
    )
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(2)
    ]

    made = [int((await child.communicate())[0]) for child in children]

    assert sorted(made) == [0, 1]


@pytest.mark.parametrize(
    ("oldest", "served"),
    [
        pytest.param("0.1.0", True, id="newer tables, which serve this program"),
        pytest.param("99.0", False, id="newer tables, made for newer programs"),
    ],
)
async def test_a_newer_database(url, oldest, served):
    await run(
        url,
        "UPDATE llmgw_revision SET version_num = '9999'",
        f"UPDATE meta SET value = '{oldest}'",  # noqa: S608 - of this test
    )

    if served:
        await (await open_database(url)).close()
    else:
        error = await fault_of(url)
        assert error.fault is StoreFault.TOO_NEW
        assert "99.0" in str(error)


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.2.0", "0.10.0"), ("0.1.0", "0.1.1"), ("1.0.dev1", "1.0.1"), ("", "0.1")],
)
def test_a_version_is_older(one, other):
    assert _numbers(one) < _numbers(other)


async def test_a_locked_database(tmp_path):
    url = f"sqlite:///{tmp_path}/llmgw.db"
    holder = sqlite3.connect(tmp_path / "llmgw.db", isolation_level=None)
    holder.execute("PRAGMA journal_mode=WAL")
    holder.execute("BEGIN IMMEDIATE")

    error = await fault_of(url)

    holder.close()
    assert error.fault is StoreFault.LOCKED


async def test_a_read_only_database(tmp_path):
    path = tmp_path / "llmgw.db"
    await (await open_database(f"sqlite:///{path}")).close()

    error = await fault_of(f"sqlite:///file:{path}?mode=ro&uri=true")

    assert error.fault is StoreFault.READ_ONLY


async def test_a_full_database(tmp_path, monkeypatch):
    pragmas = ("journal_mode=WAL", "max_page_count=5")
    monkeypatch.setattr("llmgw.store.database.PRAGMAS", pragmas)

    error = await fault_of(f"sqlite:///{tmp_path}/llmgw.db")

    assert error.fault is StoreFault.FULL


async def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "llmgw.db").write_bytes(os.urandom(8192))

    error = await fault_of(f"sqlite:///{tmp_path}/llmgw.db")

    assert error.fault is StoreFault.CORRUPT


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        pytest.param("sqlite:////nowhere/at/all/llmgw.db", StoreFault.UNREACHABLE, id="folder"),
        pytest.param(
            "postgresql://me:hush@127.0.0.1:1/llmgw", StoreFault.UNREACHABLE, id="refused"
        ),
        pytest.param(
            "postgresql://me:hush@host/db?host=/nowhere", StoreFault.UNREACHABLE, id="no socket"
        ),
        pytest.param("mysql://me:hush@127.0.0.1/llmgw", StoreFault.OTHER, id="another kind"),
        pytest.param("postgresql://me:hush@127.0.0.1:hush/x", StoreFault.OTHER, id="no port"),
    ],
)
async def test_a_database_that_can_not_be_reached(url, fault):
    error = await fault_of(url)

    assert error.fault is fault
    assert "hush" not in str(error)


def test_a_postgresql_database_that_does_not_exist():
    error = asyncio.run(fault_of(postgres.url_of("missing")))

    assert error.fault is StoreFault.REFUSED


async def test_a_folder_that_does_not_exist_is_said_in_words():
    error = await fault_of("sqlite:////nowhere/at/all/llmgw.db")

    assert str(error) == (
        "database.url: the database can't be reached: no such folder, or no permission"
    )


async def test_a_driver_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncpg", None)

    error = await fault_of("postgresql://me:hush@127.0.0.1/llmgw")

    assert "asyncpg is not installed" in str(error)


async def test_a_database_without_our_rows_is_not_served(url):
    await run(url, "DELETE FROM meta")

    assert (await fault_of(url)).fault is not StoreFault.LOCKED


def test_the_newest_migration_is_the_revision_that_the_program_expects():
    found = sorted((migrate_module.MIGRATIONS / "versions").glob("*.py"))

    assert found[-1].stem.endswith(migrate_module.REVISION)


def _shape(connection):
    looked = inspect(connection)
    return {
        name: (
            [(column["name"], column["nullable"]) for column in looked.get_columns(name)],
            sorted(index["name"] for index in looked.get_indexes(name)),
        )
        for name in looked.get_table_names()
        if name != "llmgw_revision"
    }
