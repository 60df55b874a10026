import asyncio
import signal
import subprocess
import sys

import aiohttp
import pytest

from llmgw.cli import main
from llmgw.sim.faults import Fault, FaultKind
from llmgw.sim.node import SimNode

COMMAND = (sys.executable, "-m", "llmgw", "sim")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_node_runs_in_the_foreground_until_a_signal(number):
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "--model", "m", "--model", "n", "--name", "b", "--fault", "hang,times=2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with aiohttp.ClientSession() as http:
        url = (await process.stdout.readline()).decode().strip()
        async with http.get(f"{url}/v1/models") as response:
            models = [one["id"] for one in (await response.json())["data"]]
        async with http.get(f"{url}/_sim/faults") as response:
            faults = [one["fault"] for one in (await response.json())["faults"]]

    process.send_signal(number)
    rest, introduction = await process.communicate()

    assert (models, faults, process.returncode) == (["m", "n"], ["hang"], 0)
    assert rest == b""  # stdout has the URL and nothing else
    assert introduction.startswith(b"node b serves m, n; faults: GET, POST, DELETE http://")


def test_settings_reach_the_node(monkeypatch):
    made = []

    async def serve(node):
        made.append(node)

    monkeypatch.setattr("llmgw.cli.sim._serve", serve)
    flags = "--ttft 1m --tps 0 --tokens 3 --max-model-len 9 --fault unload,model=m"

    assert main(["sim", *flags.split()]) == 0

    settings = made[0].state.settings
    assert (settings.models, settings.name) == (("sim",), "sim")
    assert (settings.ttft, settings.tps, settings.tokens) == (60.0, 0.0, 3)
    assert settings.max_model_len == 9
    assert made[0]._first_faults == (Fault(FaultKind.UNLOAD, model="m"),)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--ttft", "5"], "must be a duration", id="time without a unit"),
        pytest.param(["--tps", "fast"], "must be a number, 0 or more", id="rate"),
        pytest.param(["--tps", "-1"], "must be a number, 0 or more", id="negative rate"),
        pytest.param(["--tps", "nan"], "must be a number, 0 or more", id="no rate at all"),
        pytest.param(["--tokens", "0"], "must be a whole number, 1 or more", id="no tokens"),
        pytest.param(["--fault", "explode"], "unknown fault 'explode'", id="fault"),
    ],
)
def test_a_wrong_argument_is_told_with_its_reason(capsys, words, why):
    with pytest.raises(SystemExit) as exit_:
        main(["sim", *words])

    assert exit_.value.code == 2
    assert why in capsys.readouterr().err


async def test_a_taken_port_is_one_clear_line():
    async with SimNode(["m"]) as node:
        port = node.url.rpartition(":")[2]
        done = await asyncio.to_thread(
            subprocess.run, [*COMMAND, "--port", port], capture_output=True, text=True, check=False
        )

    assert done.returncode == 1
    assert done.stderr == f"llmgw sim: 127.0.0.1:{port}: Address already in use\n"
