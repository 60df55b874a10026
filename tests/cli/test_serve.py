"""The process as a service manager sees it: real programs, real signals, real sockets."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys

import aiohttp
import pytest

from llmgw.sim.node import SimNode
from tests.fakes.patience import WITHIN, until
from tests.fakes.process import COMMAND, GatewayProcess, chat

AS_DESCRIPTOR_3 = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
async def node():
    async with SimNode(["sim"], name="a", tps=40, tokens=8000) as node:
        yield node


@pytest.fixture
async def gateway(tmp_path, node):
    gateway = GatewayProcess(tmp_path, [node.url])
    gateway.write()
    yield gateway
    await gateway.stop()


class Stream:
    """One streamed answer, read as it comes."""

    def __init__(self, gateway, session):
        self._url = f"{gateway.url}/v1/chat/completions"
        self._session = session

    async def begin(self, tokens):
        self._answer = await self._session.post(self._url, json=chat(stream=True, tokens=tokens))
        await self._answer.content.readuntil(b"\n\n")

    async def rest(self):
        """To the end, and leave: a client that stays keeps an idle connection for 2 s."""
        text = (await self._answer.read()).decode()
        await self._session.close()
        return text


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_term_signal_lets_a_stream_finish_and_takes_nothing_new(gateway, session):
    await gateway.start()
    stream = Stream(gateway, session)
    await stream.begin(tokens=80)

    gateway.signal(signal.SIGTERM)
    await gateway.manager.hear("STOPPING=1")
    await asyncio.sleep(0.1)
    with pytest.raises(aiohttp.ClientConnectorError):
        await gateway.get("/health")
    text = await stream.rest()

    assert text.endswith("data: [DONE]\n\n")
    assert await gateway.ended() == 0
    messages = gateway.messages()
    assert messages[:2] == ["starting gateway", "config loaded"]
    assert [one for one in messages if one != "request"][-2:] == [
        "shutting down",
        "gateway stopped",
    ]


async def test_a_second_signal_does_not_wait_for_the_stream(gateway, session):
    await gateway.start()
    stream = Stream(gateway, session)
    await stream.begin(tokens=4000)
    gateway.signal(signal.SIGTERM)
    await gateway.manager.hear("STOPPING=1")

    gateway.signal(signal.SIGTERM)

    assert await gateway.ended() == 0
    with pytest.raises(aiohttp.ClientPayloadError):
        await stream.rest()


async def test_the_first_request_after_readiness_finds_the_nodes_listed(gateway):
    await gateway.start()

    detail = (await gateway.health())["details"][0]

    assert detail["models"]["state"] == "known"
    assert (await gateway.get("/readyz"))[0] == 200


async def test_a_listing_that_hangs_delays_readiness_by_half_a_second_only(gateway, node):
    await node.inject("hang_list")

    await gateway.start()

    assert (await gateway.get("/readyz"))[0] == 200
    assert (await gateway.health())["details"][0]["models"]["state"] == "untried"


async def test_sockets_of_the_service_manager_are_served_and_stay_open(gateway):
    """What `listen` names is the same address: taken as served, not as taken."""
    with socket.create_server(("127.0.0.1", gateway.port), backlog=64) as http:
        await gateway.start(
            prefix=(sys.executable, "-S", "-c", AS_DESCRIPTOR_3, str(http.fileno())),
            environment={"LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"},
            pass_fds=[http.fileno()],
        )
        assert (await gateway.get("/livez"))[0] == 200

        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0

        with socket.create_connection(("127.0.0.1", gateway.port), WITHIN):
            pass  # nobody answers now, and nobody is refused


async def test_a_unix_socket_is_served_and_outlives_an_upgrade(gateway):
    path = gateway.folder / "http.sock"
    gateway.listen = [f"unix:{path}"]
    gateway.write()
    await gateway.start()

    async def is_alive():
        connector = aiohttp.UnixConnector(str(path))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get("http://gateway/livez") as answer,
        ):
            return answer.status == 200

    assert await is_alive()
    code, _, err = await gateway.run("upgrade")
    assert (code, err) == (0, "")
    assert await gateway.ended() == 0

    assert await is_alive()


async def test_a_watchdog_is_pinged_from_the_event_loop(gateway):
    await gateway.start(environment={"WATCHDOG_USEC": "1000000"})

    await gateway.manager.hear("WATCHDOG=1")
    await gateway.manager.hear("WATCHDOG=1")


async def test_a_key_written_while_it_runs_closes_the_gateway(gateway, session):
    await gateway.start()
    url = f"{gateway.url}/v1/chat/completions"
    async with session.post(url, json=chat()) as answer:
        assert answer.status == 200

    (gateway.folder / "keys.toml").write_text("")
    statuses = set()

    async def is_closed():
        async with session.post(url, json=chat()) as answer:
            statuses.add(answer.status)
        return 401 in statuses

    await until(is_closed)
    assert statuses <= {200, 401}


async def test_an_upgrade_serves_new_requests_while_the_old_program_finishes(gateway, session):
    await gateway.start()
    old = gateway.pid()
    stream = Stream(gateway, session)
    await stream.begin(tokens=160)

    code, out, err = await gateway.run("upgrade")
    assert (code, err) == (0, "")
    new = gateway.pid()
    await gateway.manager.hear(f"MAINPID={new}")
    assert (await gateway.health())["healthy"] == 1

    assert str(new) in out
    assert (await stream.rest()).endswith("data: [DONE]\n\n")
    assert await gateway.ended() == 0
    assert new != old
    assert gateway.pid() == new
    assert "STOPPING=1" not in gateway.manager.heard
    assert (await gateway.get("/livez"))[0] == 200


async def test_an_upgrade_to_a_program_that_does_not_start_changes_nothing(gateway):
    await gateway.start()
    old = gateway.pid()
    gateway.config.write_text("nonsense = [")

    code, _, err = await gateway.run("upgrade")

    assert code == 1
    assert "goes on as before" in err
    assert gateway.pid() == old
    assert (await gateway.get("/livez"))[0] == 200


async def test_status_shows_the_nodes_to_people_and_to_scripts(gateway):
    await gateway.start()

    code, text, _ = await gateway.run("status")
    _, document, _ = await gateway.run("status", "--json")

    assert code == 0
    assert text.splitlines()[0].startswith("ok: 1 of 1 nodes healthy")
    assert re.search(r"^n0 .* healthy +known: sim$", text, re.MULTILINE)
    assert json.loads(document)["pid"] == gateway.pid()


def refusal(*words, **environment):
    """What a gateway that can't start says, and that it says it by its exit status."""
    done = subprocess.run(
        [*COMMAND, "serve", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=15,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_a_taken_port_is_one_line_that_names_its_key(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        lines = refusal(
            "--node", "http://127.0.0.1:9", "--listen", address, STATE_DIRECTORY=str(tmp_path)
        )

    assert lines == [
        f"llmgw serve: gateway.listen: can't listen on {address}: the address is in use"
    ]


def test_a_state_folder_that_cannot_be_made_is_one_line_that_names_its_key(tmp_path):
    (tmp_path / "file").touch()

    (line,) = refusal(
        *("--node", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"),
        STATE_DIRECTORY=str(tmp_path / "file" / "state"),
    )

    assert line.startswith("llmgw serve: database.url: the state folder")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "there is no such file", id="no file"),
        pytest.param("x = [", "is no TOML", id="not TOML"),
        pytest.param("[gateway]\nlistn = 1\n", 'gateway.listn: .*"listen"', id="a misspelled key"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_for_each_fault(tmp_path, text, said):
    path = tmp_path / "llmgw.toml"
    if text is not None:
        path.write_text(text)

    lines = refusal("-c", str(path), STATE_DIRECTORY=str(tmp_path))

    assert len(lines) == 1
    assert lines[0].startswith(f"llmgw serve: {path}: ")
    assert re.search(said, lines[0])


def test_listen_on_the_command_line_needs_nodes_on_it():
    (line,) = refusal("--listen", "127.0.0.1:0")

    assert "--node" in line


def test_the_heavy_parts_of_the_program_are_loaded_only_when_they_are_used():
    """A start has a second; the database's migrations and the admin's pages are not needed."""
    program = "import sys, llmgw.daemon.compose; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"alembic", "jinja2", "llmgw.sim", "tomli_w"} & set(loaded)
