"""The same answers, read by this client and by aiohttp's: status, headers and body agree."""

import aiohttp
import pytest

from llmgw.upstream.pool import Pools
from tests.fakes.calls import call, node, read_all
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, RawServer, answers, chunk, json_answer

LARGE = bytes(range(256)) * 2000
UNTIL_EOF = b"connection: close\r\n\r\n"
CORPUS = [
    pytest.param(json_answer(), id="JSON"),
    pytest.param(json_answer(LARGE), id="large"),
    pytest.param(json_answer(b"", status=503), id="empty error"),
    pytest.param(json_answer(b'{"error": {}}', status=404), id="error"),
    pytest.param(CHUNKED + LAST_CHUNK, id="no chunk"),
    pytest.param(CHUNKED + chunk(b"data: a\n\n") + chunk(b"data: b\n") + LAST_CHUNK, id="events"),
    pytest.param(CHUNKED + chunk(LARGE) + LAST_CHUNK, id="large chunk"),
    pytest.param(CHUNKED + b"".join(map(chunk, [b"x"] * 500)) + LAST_CHUNK, id="500 chunks"),
    pytest.param(CHUNKED + b'2;a="b"\r\nhi\r\n0;c\r\n\r\n', id="extensions"),
    pytest.param(CHUNKED + b"000002\r\nhi\r\n00\r\n\r\n", id="leading zeros"),
    pytest.param(CHUNKED + chunk(b"hi") + b"0\r\nx-trailer: 1\r\n\r\n", id="trailers"),
    pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
    pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + json_answer(), id="100 first"),
    pytest.param(b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + json_answer(), id="103 first"),
    pytest.param(b"HTTP/1.1 200 OK\r\nX-A: a\r\nx-a: b\r\ncontent-length: 0\r\n\r\n", id="twice"),
    pytest.param(b"HTTP/1.1 200 OK\r\nx:  padded \t\r\ncontent-length: 0\r\n\r\n", id="padded"),
    pytest.param(b"HTTP/1.1 200 OK\r\nx:\r\ncontent-length: 0\r\n\r\n", id="empty value"),
    pytest.param(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", id="no reason"),
]
CLOSED = [
    pytest.param(b"HTTP/1.1 200 OK\r\n" + UNTIL_EOF + b"until the end", id="until EOF"),
    pytest.param(b"HTTP/1.1 200 OK\r\n" + UNTIL_EOF, id="nothing until EOF"),
    pytest.param(b"HTTP/1.0 200 OK\r\n\r\nold", id="HTTP/1.0 until EOF"),
    pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold", id="HTTP/1.0 length"),
]


async def ours(port: int):
    pools = Pools()
    exchange = await call(pools, node(port))
    body = await read_all(exchange)
    pools.close()
    return exchange.head.status, without_length(exchange.head.headers), body


def without_length(lines):
    """What is read at once keeps the length apart."""
    return tuple(line for line in lines if line[0] != "content-length")


async def theirs(port: int):
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(f"http://127.0.0.1:{port}/v1/x", data=b"{}") as answer,
    ):
        lines = [(name.lower(), value) for name, value in answer.headers.items()]
        return answer.status, without_length(lines), await answer.read()


@pytest.mark.parametrize("wire", CORPUS)
async def test_an_answer_on_a_connection_that_stays(wire):
    async with RawServer(answers(wire)) as server:
        assert await ours(server.port) == await theirs(server.port)


@pytest.mark.parametrize("wire", CLOSED)
async def test_an_answer_on_a_connection_that_closes(wire):
    async def play(peer):
        await peer.request()
        await peer.send(wire)

    async with RawServer(play) as server:
        assert await ours(server.port) == await theirs(server.port)
