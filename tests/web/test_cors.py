"""Browsers of configured origins, and what they are told."""

from dataclasses import replace

import pytest

from llmgw.core.config import Config, GatewayConfig
from llmgw.web.cors import USUAL_NAMES
from tests.fakes.gateway import keyring
from tests.fakes.raw_client import chat, request

ORIGIN = "https://ui.example.test"


def allow(gateway, *origins: str) -> None:
    gateway.config = replace(Config(), gateway=replace(GatewayConfig(), cors_origins=origins))


def preflight(*names: str, origin=ORIGIN, path="/v1/chat/completions") -> bytes:
    headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
    headers += [("Access-Control-Request-Headers", name) for name in names]
    return request("OPTIONS", path, headers=headers)


async def test_a_preflight_needs_no_key_and_the_call_does(door):
    allow(door.gateway, ORIGIN)
    door.gateway.keyring = keyring("k")

    asked = await door.ask(preflight("authorization,content-type"))
    called = await door.ask(chat(headers=[("Origin", ORIGIN)]))

    assert (asked.status, called.status) == (204, 401)
    assert asked.headers["access-control-allow-origin"] == ORIGIN
    assert asked.headers["access-control-allow-methods"] == "OPTIONS, POST"
    assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
    assert called.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in called.headers["access-control-expose-headers"]
    assert asked.headers["vary"] == called.headers["vary"] == "origin"


async def test_any_origin_may_be_allowed(door):
    allow(door.gateway, "*")

    reply = await door.ask(chat(headers=[("Origin", "https://elsewhere.test")]))

    assert reply.headers["access-control-allow-origin"] == "*"
    assert "vary" not in reply.headers


@pytest.mark.parametrize(
    ("origins", "origin", "varies"),
    [
        pytest.param((), ORIGIN, False, id="none configured"),
        pytest.param((ORIGIN,), "https://other.test", True, id="another origin"),
        pytest.param((ORIGIN,), "null", True, id="no origin"),
    ],
)
async def test_other_pages_are_told_nothing(door, origins, origin, varies):
    allow(door.gateway, *origins)

    reply = await door.ask(chat(headers=[("Origin", origin)]))

    assert reply.status == 200
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert ("vary" in reply.headers) is varies


async def test_an_answer_without_an_origin_still_varies_by_it(door):
    allow(door.gateway, ORIGIN)

    assert (await door.ask(chat())).headers["vary"] == "origin"


@pytest.mark.parametrize("names", ["a, b\x7f", "<script>", "a,,b", " "])
async def test_names_that_are_none_are_not_repeated(door, names):
    allow(door.gateway, ORIGIN)

    reply = await door.ask(preflight(names))

    assert reply.status in (204, 400)
    assert reply.headers.get("access-control-allow-headers", USUAL_NAMES) == USUAL_NAMES


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "*"])
async def test_options_says_what_is_allowed(door, path):
    reply = await door.ask(request("OPTIONS", path))

    assert reply.status == 204
    assert "OPTIONS" in reply.headers["allow"]
    assert "access-control-allow-methods" not in reply.headers


async def test_options_of_an_unknown_path_is_a_404(door):
    assert (await door.ask(request("OPTIONS", "/nowhere"))).status == 404
