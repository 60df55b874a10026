"""What a connection does with bytes that are no request, and with a client that leaves."""

import asyncio
import logging
import socket
from random import Random

import pytest

from llmgw.web import protocol, watches
from llmgw.web.access import Ending
from llmgw.web.pages import public_pages
from tests.fakes.gateway import JSON
from tests.fakes.patience import WITHIN, until
from tests.fakes.raw_client import chat, request
from tests.web.conftest import Door, opened

CANARY = "sk-CANARY-9f8e7d"
SECRET = ("Authorization", f"Bearer {CANARY}")


def head(*lines: str, first: str = "POST /v1/chat/completions HTTP/1.1") -> bytes:
    return "\r\n".join((first, "Host: gateway", *lines, "", "")).encode()


MALFORMED = [
    pytest.param(f"{CANARY}\r\n\r\n".encode(), 400, id="no request line"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="TLS on a plain port"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="the preface of HTTP/2"),
    pytest.param(
        head(first=f"POST /v1/responses?x={CANARY}\xe9 HTTP/1.1"), 400, id="a query in UTF-8"
    ),
    pytest.param(head(f"bad header {CANARY}"), 400, id="a header without a colon"),
    pytest.param(head(f"x : {CANARY}"), 400, id="a space before the colon"),
    pytest.param(head(f"a: {CANARY}\0"), 400, id="a null byte in a value"),
    pytest.param(
        head(f"x-t: {CANARY}", "Content-Length: 5", "Transfer-Encoding: chunked"),
        400,
        id="both lengths",
    ),
    pytest.param(
        head(f"x-t: {CANARY}", "Content-Length: 5", "Content-Length: 6"), 400, id="two lengths"
    ),
    pytest.param(head(f"Content-Length: {CANARY}"), 400, id="a length that is no number"),
    pytest.param(head("Transfer-Encoding: chunked, identity"), 400, id="an odd coding"),
    pytest.param(f"GET / HTTP/1.1\r\nx: {CANARY}\r\n\r\n".encode(), 400, id="no host"),
    pytest.param(head(f"x-big: {CANARY}{'a' * 70_000}"), 431, id="a header of 70 KB"),
    pytest.param(
        head(first=f"GET /{CANARY}{'a' * 70_000} HTTP/1.1"), 431, id="a request line of 70 KB"
    ),
    pytest.param(head(*(f"x-{n}: {CANARY}" for n in range(200))), 431, id="200 headers"),
    pytest.param(
        head(*(f"x-{n}: {'a' * 60_000}" for n in range(5)))[:-2], 431, id="300 KB without an end"
    ),
]


@pytest.mark.parametrize(("data", "status"), MALFORMED)
async def test_what_is_no_request_is_refused_in_json_without_a_word_of_the_client(
    door, caplog, data, status
):
    caplog.set_level(logging.DEBUG)
    client = await door.client()

    reply = await client.ask(data)

    assert reply.version == "HTTP/1.1"
    assert reply.status == status
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-request-id"].startswith("req_")
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert reply.closes
    assert await client.rest() == b""
    assert CANARY not in (reply.head + reply.body).decode()
    assert CANARY not in caplog.text
    assert "Traceback" not in caplog.text
    assert (await door.ask(chat())).status == 200
    assert door.gateway.calls


async def test_malformed_bytes_leave_a_record_without_a_path(door):
    await door.ask(f"GET /{CANARY} HTTP/9\r\n\r\n".encode())

    [record] = door.records
    assert (record.method, record.route, record.status) == ("-", "malformed", 400)


@pytest.mark.parametrize("size", [9_000, 60_000], ids=["over aiohttp's usual limit", "60 KB"])
async def test_a_long_header_is_accepted(door, size):
    reply = await door.ask(chat(headers=[("x-long", "a" * size)]))

    assert reply.status == 200


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        pytest.param("Transfer-Encoding: chunked", b"5\r\n{}\r\nzz\r\n", id="a broken chunk"),
        pytest.param("Transfer-Encoding: chunked", b"xyz\r\n", id="a chunk size that is none"),
    ],
)
async def test_a_body_with_broken_framing_is_refused_and_ends_the_connection(
    door, caplog, framing, body
):
    client = await door.client()
    client.send(head(framing))
    await asyncio.sleep(0.01)

    reply = await client.ask(body)

    assert (reply.status, reply.code, reply.closes) == (400, "invalid_request", True)
    assert await client.rest() == b""
    assert "Traceback" not in caplog.text


async def test_a_body_that_ends_early_is_refused(door, caplog):
    client = await door.client()
    client.send(head("Content-Length: 100") + b'{"model":')
    client.shut_sending()

    reply = await client.reply()

    assert (reply.status, reply.code, reply.closes) == (400, "invalid_request", True)
    assert await client.rest() == b""
    assert "connection failed" not in caplog.text


async def test_pipelined_requests_are_answered_in_order(door):
    client = await door.client()
    client.send(b"".join(request("GET", f"/v1/models/{n}") for n in range(100)))
    client.send(chat())

    replies = [await client.reply() for _ in range(101)]

    ids = [int(reply.headers["x-request-id"].removeprefix("req_")) for reply in replies]
    assert [reply.status for reply in replies] == [404] * 100 + [200]
    assert ids == sorted(ids)


async def test_requests_behind_a_body_that_came_in_pieces_are_not_forgotten(door):
    client = await door.client()
    first = chat()
    client.send(first[:-5])
    await asyncio.sleep(0.02)
    client.send(first[-5:] + chat() * 5)

    assert [(await client.reply()).status for _ in range(6)] == [200] * 6


MUTATIONS = [
    lambda data, at, random: data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
    lambda data, at, random: data[:at] + data[at + random.randrange(1, 9) :],
    lambda data, at, random: data[:at] + random.choice(ODD) + data[at:],
    lambda data, at, random: data[:at],
]
ODD = [b"\r", b"\n", b"\0", b"\r\n\r\n", b": ", b" ", b"\xff", b"Content-Length: 1\r\n", b"0\r\n"]


@pytest.mark.parametrize("seed", range(4))
async def test_no_bytes_make_it_fail_or_speak_anything_but_http(door, caplog, seed):
    random = Random(seed)  # noqa: S311 - a test that can be repeated
    chunked = head("Transfer-Encoding: chunked", "x: y") + b'e\r\n{"model":"m1"}\r\n0\r\n\r\n'
    for _ in range(100):
        data = random.choice((chat(headers=[("x", "y")]), chunked, request("GET", "/v1/models")))
        for _ in range(random.randrange(1, 4)):
            data = random.choice(MUTATIONS)(data, random.randrange(len(data) + 1), random)
        client = await door.client()
        client.send(data)
        await asyncio.sleep(0)
        client.shut_sending()

        answer = await client.rest()

        assert answer.startswith(b"HTTP/1.1 ") or not answer

    assert (await door.ask(chat())).status == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_fault_inside_the_server_loop_is_logged_without_its_words(door, caplog):
    connection = door.server._made()

    connection.log_exception("Unhandled exception %s", CANARY, exc_info=KeyError(CANARY))
    connection.log_exception("Missing return statement")

    assert [record.message for record in caplog.records] == ["connection failed"] * 2
    assert caplog.records[0].error == "KeyError"
    assert CANARY not in caplog.text


class Hanging:
    """A handler that never answers, and remembers how it ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, call, principal, downstream) -> None:
        self.started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


LEAVING = [
    pytest.param(lambda client: client.close(), id="closes"),
    pytest.param(lambda client: client.reset(), id="resets"),
    pytest.param(lambda client: client.shut_sending(), id="shuts its sending side"),
]
AHEAD = [
    pytest.param(b"", id="nothing ahead"),
    pytest.param(chat(), id="one request ahead"),
    pytest.param(chat() * 64, id="64 requests ahead"),
    pytest.param(chat(b'{"model":"%s"}' % (b"a" * 900_000)), id="a large body ahead"),
    pytest.param(chat()[:40], id="a part of a head ahead"),
    pytest.param(chat()[:-5], id="a part of a body ahead"),
    pytest.param(b"\0\r\n\r\n", id="what is no request ahead"),
]


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("leave", LEAVING)
async def test_a_client_that_leaves_ends_its_call(door, leave, ahead):
    door.gateway.serving = hanging = Hanging()
    client = await door.client()
    client.send(chat())
    await hanging.started.wait()
    client.send(ahead)
    await asyncio.sleep(0.02)

    leave(client)

    async with asyncio.timeout(WITHIN):
        await hanging.cancelled.wait()
    await until(lambda: door.records)
    assert door.records[0].ending is Ending.LEFT
    await until(lambda: door.server.connections == 0)


def test_who_has_left_is_seen_within_100_ms():
    """Where nothing is read the end of a client is seen at the second look at the latest."""
    assert 2 * watches.LOOK_EVERY <= 0.1


async def test_a_client_that_only_waits_has_not_left(door):
    """Reading stops for what was sent ahead; the one who looks for its end must see none."""
    door.gateway.serving = hanging = Hanging()
    client = await door.client()
    client.send(chat())
    await hanging.started.wait()
    client.send(chat() * 64)

    await asyncio.sleep(4 * watches.LOOK_EVERY)

    assert not hanging.cancelled.is_set()


@pytest.mark.parametrize("leave", [pytest.param(lambda c: c.reset(), id="resets"), LEAVING[2]])
async def test_a_client_that_leaves_inside_a_stream_ends_it(door, leave):
    cancelled = asyncio.Event()

    async def stream(call, principal, downstream):
        downstream.commit(200, ())
        try:
            while True:
                downstream.write(b"data: x\n\n")
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    door.gateway.serving = stream
    client = await door.client()
    client.send(chat())
    await client.reader.readuntil(b"data: x")

    leave(client)

    async with asyncio.timeout(WITHIN):
        await cancelled.wait()


async def test_a_client_that_takes_nothing_pauses_its_writer_and_resumes_it(door):
    told = []

    async def flood(call, principal, downstream):
        downstream.on_pause(lambda: told.append("pause"), lambda: told.append("resume"))
        downstream.commit(200, ())
        while not downstream.paused:
            downstream.write(b"x" * 65_536)
        told.append("full")
        await downstream.drained()
        told.append("drained")
        downstream.finish()

    door.gateway.serving = flood
    client = await door.client(limit=1024)
    client.send(chat())
    await until(lambda: "full" in told)
    await asyncio.sleep(0.05)
    assert told == ["pause", "full"]

    reply = await client.reply()

    assert told == ["pause", "full", "resume", "drained"]
    assert len(reply.body) == door.records[0].bytes >= protocol.WRITE_BUFFER


async def test_a_closed_connection_is_dropped_once_its_client_takes_nothing(gateway, monkeypatch):
    monkeypatch.setattr(watches, "FLUSH_WITHIN", 0.05)

    async def flood_and_cut(call, principal, downstream):
        downstream.commit(200, ())
        while not downstream.paused:
            downstream.write(b"x" * 65_536)
        downstream.cut()

    gateway.serving = flood_and_cut
    async with opened(Door(gateway)) as door:
        client = await door.client(limit=1024)
        client.send(chat())
        await until(lambda: door.records)

        await until(lambda: door.server.connections == 0)

        assert door.records[0].ending is Ending.CUT


async def test_a_slow_client_gets_all_of_a_closed_connection(gateway, monkeypatch):
    monkeypatch.setattr(watches, "FLUSH_WITHIN", 0.6)
    size = 4 * 1024 * 1024

    async def answer(call, principal, downstream):
        downstream.respond(200, JSON, b"x" * size)

    gateway.serving = answer
    async with opened(Door(gateway)) as door:
        client = await door.client(limit=1024)
        client.send(chat(headers=[("Connection", "close")]))
        received = 0
        while data := await client.reader.read(size // 16):
            received += len(data)
            await asyncio.sleep(0.02)

        assert received > size


async def test_an_idle_connection_is_closed(gateway):
    async with opened(Door(gateway, keepalive_timeout=0.5)) as door:
        client = await door.client()
        assert (await client.ask(chat())).status == 200

        assert await client.rest() == b""


async def test_a_head_that_never_ends_is_closed_like_an_idle_connection(gateway):
    async with opened(Door(gateway, keepalive_timeout=0.5)) as door:
        client = await door.client()
        client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost:")

        assert await client.rest() == b""


async def test_an_early_answer_is_not_lost_to_a_client_that_still_sends(gateway):
    """A close with unread bytes would reset the connection, and the answer with it."""
    async with opened(Door(gateway, public_pages(gateway))) as door:
        client = await door.client()
        sock = client._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        client.send(head("Content-Length: 40000000"))
        client.send(b"x" * 40_000_000)

        reply = await client.reply()

        assert (reply.status, reply.code, reply.closes) == (413, "request_too_large", True)
