import asyncio
import os

import aiohttp
import pytest

from llmgw.cli import child
from llmgw.cli.child import ChildFailed, GatewayProcess
from llmgw.sim.node import SimNode


async def test_a_gateway_is_ready_when_started_and_gone_when_left(tmp_path):
    async with (
        SimNode(["m"]) as node,
        GatewayProcess([node.url], tmp_path) as gateway,
        aiohttp.ClientSession() as http,
    ):
        async with http.get(f"{gateway.url}/v1/models") as response:
            assert [one["id"] for one in (await response.json())["data"]] == ["m"]
        async with http.get(gateway.metrics_url) as response:
            assert response.status == 200
        process = gateway._process

    assert process.returncode == 0
    assert "gateway stopped" in gateway.log.read_text()


async def test_a_gateway_that_refuses_its_arguments_says_why(tmp_path):
    with pytest.raises(ChildFailed, match="status 1: llmgw serve: the command line"):
        async with GatewayProcess(["ftp://nowhere"], tmp_path):
            pytest.fail("it must not start")


async def test_a_gateway_that_never_gets_ready_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "READY_WITHIN", 0.3)
    gateway = GatewayProcess([], tmp_path)
    gateway._words = ["sleep", "60"]

    with pytest.raises(ChildFailed, match="not ready within"):
        async with gateway:
            pytest.fail("it must not start")

    assert gateway._process.returncode == -15


async def test_one_that_does_not_follow_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "STOP_WITHIN", 0.1)
    gateway = GatewayProcess([], tmp_path)
    gateway._process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        "trap '' TERM; echo; while :; do sleep 0.05; done",
        stdout=asyncio.subprocess.PIPE,
    )
    await gateway._process.stdout.readline()

    await gateway.stop()
    await gateway.stop()

    assert gateway._process.returncode == -9


def test_what_a_service_manager_said_to_us_is_not_the_childs(tmp_path, monkeypatch):
    for name in child.OF_THE_PARENT:
        monkeypatch.setenv(name, "1")

    environment = child._environment(tmp_path)

    assert not child.OF_THE_PARENT & set(environment)
    assert environment["STATE_DIRECTORY"] == str(tmp_path)
    assert environment["PATH"] == os.environ["PATH"]
