"""The database from outside: what a start says of one that can't be used, and an outage."""

import asyncio
import json
import signal
import sqlite3

import aiohttp
import pytest

from llmgw.sim.node import SimNode
from tests.fakes.patience import until
from tests.fakes.process import COMMAND, GatewayProcess, chat


@pytest.fixture
async def node():
    async with SimNode(["sim"], name="a", tokens=1) as node:
        yield node


@pytest.fixture
async def gateway(tmp_path, node):
    gateway = GatewayProcess(tmp_path, [node.url])
    yield gateway
    await gateway.stop()


def write(gateway: GatewayProcess, url: str) -> None:
    gateway.write()
    gateway.config.write_text(f'{gateway.config.read_text()}\n[database]\nurl = "{url}"\n')


async def refused_start(gateway: GatewayProcess) -> tuple[int, list[str]]:
    """The exit status, and the lines that are for people."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("serve", "-c", str(gateway.config)),
        env=gateway.environment,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    return process.returncode, [one for one in said.decode().splitlines() if one[:1] != "{"]


def make_text(path):
    path.write_text("this is a letter, and no database" * 100)


def make_folder(path):
    path.mkdir()


def make_newer(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE llmgw_revision (version_num TEXT)")
        database.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        database.execute("INSERT INTO llmgw_revision VALUES ('9999')")
        database.execute("INSERT INTO meta VALUES ('oldest_program', '99.0')")
    database.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(make_text, "is no SQLite database", id="something else"),
        pytest.param(make_folder, "can't be reached", id="a folder"),
        pytest.param(make_newer, "too new for this program", id="of a newer program"),
    ],
)
async def test_a_database_that_cant_be_used_stops_the_start_with_one_line(
    gateway, tmp_path, make, says
):
    path = tmp_path / "bad.db"
    make(path)
    write(gateway, f"sqlite:///{path}")

    status, lines = await refused_start(gateway)

    assert status == 1
    assert len(lines) == 1, lines
    assert lines[0].startswith("llmgw serve: database.url: ")
    assert says in lines[0]


async def test_one_that_is_not_there_is_told_without_its_password(gateway):
    write(gateway, "postgresql://llmgw:hush-hush@127.0.0.1:9/llmgw")

    status, lines = await refused_start(gateway)

    assert status == 1
    assert len(lines) == 1
    assert "can't be reached" in lines[0]
    assert "hush" not in lines[0]


async def test_one_that_goes_away_stops_nobody_and_gets_its_rows_when_it_is_back(
    gateway, tmp_path
):
    path = tmp_path / "llmgw.db"
    write(gateway, f"sqlite:///{path}")
    await gateway.start()
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")

    async with aiohttp.ClientSession() as session:
        answers = [await _chat(session, gateway) for _ in range(20)]
        await eventually_state(gateway, "spooling")
        answers += [await _chat(session, gateway) for _ in range(20)]
        await asyncio.sleep(0.6)  # what is over sooner is no news
    assert answers == [200] * 40
    _, text = await gateway.get("/metrics", port=gateway.metrics_port)
    assert "gateway_database_up 0.0" in text

    lock.execute("ROLLBACK")
    lock.close()
    await eventually_state(gateway, "ok")
    await until(lambda: "database answers again" in gateway.messages())
    gateway.signal(signal.SIGTERM)
    assert await gateway.ended() == 0

    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM requests").fetchall() == [(40,)]
        assert database.execute("SELECT count(*) FROM attempts").fetchall() == [(40,)]
    database.close()
    assert [one for one in gateway.messages() if one.startswith("database")] == [
        "database does not answer",
        "database answers again",
    ]


async def eventually_state(gateway: GatewayProcess, state: str) -> None:
    async def is_reached() -> bool:
        return (await gateway.health())["database"] == state

    await until(is_reached)


async def _chat(session: aiohttp.ClientSession, gateway: GatewayProcess) -> int:
    async with session.post(f"{gateway.url}/v1/chat/completions", json=chat()) as answer:
        json.loads(await answer.read())
        return answer.status
