"""`llmgw reload` and SIGHUP on a real process."""

import asyncio
import json
import signal
import socket

import pytest

from llmgw.sim.node import SimNode
from tests.fakes.patience import WITHIN
from tests.fakes.process import GatewayProcess, free_port


@pytest.fixture
async def gateway(tmp_path):
    async with SimNode(["sim"], name="a") as node:
        gateway = GatewayProcess(tmp_path, [node.url])
        gateway.write()
        await gateway.start()
        yield gateway
        await gateway.stop()


async def reload(gateway):
    return await gateway.run("reload", "-c", str(gateway.config))


async def metric(gateway, name):
    _, text = await gateway.get("/metrics", port=gateway.metrics_port)
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


async def test_a_good_file_is_taken_and_a_bad_one_refused_with_its_faults(gateway):
    before = await gateway.health()
    gateway.write(health_interval="5s")
    code, out, err = await reload(gateway)
    good = await gateway.health()
    assert (code, err) == (0, "")
    assert good["config"]["digest"] in out
    assert good["config"]["digest"] != before["config"]["digest"]
    loaded = json.loads((gateway.folder / "run" / "loaded.json").read_text())
    assert loaded["gateway"]["health_interval"] == "5s"

    gateway.config.write_text('[gateway]\nlisten = "nowhere"\n[[nodes]]\nurl = 1\n')
    code, _, err = await reload(gateway)
    bad = await gateway.health()

    assert code == 1
    assert "gateway.listen" in err
    assert "nodes[0].url" in err
    assert bad["config"]["digest"] == good["config"]["digest"]
    assert "nodes[0].url" in bad["config"]["last_error"]
    assert bad["nodes"] == 1
    assert await metric(gateway, 'gateway_reloads_total{result="error"}') == 1
    assert "config reload failed" in gateway.messages()


async def test_the_service_manager_hears_of_every_reload_and_its_end(gateway):
    gateway.signal(signal.SIGHUP)
    await gateway.manager.hear("RELOADING=1")
    await gateway.manager.hear("READY=1")

    gateway.config.write_text("x = [")
    gateway.signal(signal.SIGHUP)
    await gateway.manager.hear("RELOADING=1")
    await gateway.manager.hear("READY=1")

    status = [one for one in gateway.manager.heard if one.startswith("STATUS=")][-1]
    assert status.startswith("STATUS=the last reload was refused")


async def test_two_reloads_at_once_end_on_the_newest_file(gateway):
    gateway.write(health_interval="5s")
    gateway.signal(signal.SIGHUP)
    gateway.write(health_interval="7s")

    first, second = await asyncio.gather(reload(gateway), reload(gateway))

    assert (first[0], second[0]) == (0, 0)
    loaded = json.loads((gateway.folder / "run" / "loaded.json").read_text())
    assert loaded["gateway"]["health_interval"] == "7s"


async def test_a_new_address_serves_and_the_old_one_ends(gateway):
    old, gateway.port = gateway.port, free_port()
    gateway.write()

    code, _, _ = await reload(gateway)

    assert code == 0
    assert (await gateway.get("/livez"))[0] == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", old), WITHIN)


async def test_an_address_that_is_taken_refuses_the_reload_and_keeps_the_old(gateway):
    old = gateway.port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway.port = taken.getsockname()[1]
        gateway.write()

        code, _, err = await reload(gateway)

    assert code == 1
    assert "gateway.listen" in err
    assert (await gateway.get("/livez", port=old))[0] == 200


async def test_without_a_gateway_a_reload_fails_in_one_line(tmp_path):
    gateway = GatewayProcess(tmp_path, ["http://127.0.0.1:9"])
    gateway.write()

    code, _, err = await reload(gateway)
    gateway.manager.close()

    assert code == 1
    assert err.startswith("llmgw reload: no gateway runs")
