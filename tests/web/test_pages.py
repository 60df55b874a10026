"""The pages that say what this is and whether it is there, on both doors."""

import pytest

from llmgw import __version__
from tests.fakes.raw_client import request


@pytest.mark.parametrize("path", ["/", "/?x=1"])
async def test_the_root_says_name_and_version(door, path):
    reply = await door.ask(request("GET", path))

    assert (reply.status, reply.json) == (200, {"name": "llmgw", "version": __version__})


@pytest.mark.parametrize("path", ["/", "/health", "/livez", "/readyz"])
async def test_head_is_answered_like_get(door, path):
    client = await door.client()

    head = await client.ask(request("HEAD", path), head_only=True)
    get = await client.ask(request("GET", path))

    assert (head.status, get.status) == (200, 200)
    assert head.headers["content-length"] == get.headers["content-length"]


async def test_it_is_alive_while_it_drains(door):
    door.gateway.draining = True

    assert (await door.ask(request("GET", "/livez"))).status == 200


@pytest.mark.parametrize(
    ("ready", "draining", "status", "word"),
    [
        (False, False, 503, "starting"),
        (True, False, 200, "ready"),
        (True, True, 503, "draining"),
    ],
)
async def test_it_is_ready_between_start_and_drain(door, ready, draining, status, word):
    door.gateway.ready, door.gateway.draining = ready, draining

    reply = await door.ask(request("GET", "/readyz"))

    assert (reply.status, reply.json) == (status, {"status": word})


@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz", "/metrics", "/"])
async def test_the_metrics_door_has_them_too(metrics_door, path):
    assert (await metrics_door.ask(request("GET", path))).status == 200


async def test_the_metrics_door_serves_no_requests(metrics_door):
    reply = await metrics_door.ask(request("POST", "/v1/chat/completions", body=b"{}"))

    assert reply.status == 404


async def test_the_public_door_shows_no_metrics(door):
    assert (await door.ask(request("GET", "/metrics"))).status == 404
