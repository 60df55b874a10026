"""A health check passes by a 200 and by nothing else."""

import socket

import pytest

from llmgw.core.health import Failed, Passed
from llmgw.upstream.client import WatchClient
from llmgw.upstream.probe import probe
from tests.builders import node
from tests.fakes.descriptors import no_descriptors
from tests.fakes.rawserver import CHUNKED, RawServer, answers, chunk, json_answer


@pytest.fixture
async def client():
    made = WatchClient()
    yield made
    await made.close()


async def check(client: WatchClient, port: int, within: float = 5.0, **fields: object):
    return await probe(client, node("a", port, **fields), within=within)


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (200, Passed()),
        (204, Failed(connection=False)),
        (302, Failed(connection=False)),
        (401, Failed(connection=False)),
        (404, Failed(connection=False)),
        (500, Failed(connection=False)),
        (503, Failed(connection=False)),
    ],
)
async def test_200_is_a_pass_and_any_other_status_is_not(client, status, found):
    async with RawServer(answers(json_answer(b"", status=status))) as server:
        assert await check(client, server.port) == found


async def test_a_refusal_is_a_failure_of_the_connection(client):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))

        assert await check(client, free.getsockname()[1]) == Failed(connection=True)


async def test_so_is_a_connection_closed_without_an_answer(client):
    async def play(peer):
        await peer.request()

    async with RawServer(play) as server:
        assert await check(client, server.port) == Failed(connection=True)


async def test_a_node_that_hangs_fails_but_is_there(client):
    async def play(peer):
        await peer.request()
        await peer.left()

    async with RawServer(play) as server:
        assert await check(client, server.port, within=0.1) == Failed(connection=False)


async def test_a_long_body_is_read_to_its_limit_and_dropped(client):
    async def play(peer):
        await peer.request()
        await peer.send(CHUNKED, *[chunk(b"x" * 40_000)] * 3)
        await peer.left()

    async with RawServer(play) as server:
        assert await check(client, server.port) == Passed()


@pytest.mark.parametrize(("path", "asked"), [("/health", "/health"), ("/ping?x=1", "/ping?x=1")])
async def test_the_health_path_is_the_node_s_own_with_its_credential(client, path, asked):
    async with RawServer(answers(json_answer())) as server:
        await check(
            client, server.port, health_path=path, credential=(("authorization", "Bearer s"),)
        )

        assert server.requests[0].line == f"GET {asked} HTTP/1.1"
        assert server.requests[0].values("authorization") == ["Bearer s"]


async def test_a_check_that_was_not_made_says_nothing_of_the_node(client):
    async with RawServer(answers(json_answer())) as server:
        with no_descriptors():
            assert await check(client, server.port) is None

        assert await check(client, server.port) == Passed()
