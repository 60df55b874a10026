"""Listeners come and go, and a drain loses nobody."""

import asyncio
import socket

import pytest

from llmgw.web import server
from llmgw.web.server import WebServer
from llmgw.web.site import Site
from tests.fakes.patience import WITHIN, until
from tests.fakes.raw_client import RawClient, chat, request
from tests.web.conftest import listening


@pytest.fixture
def slow(door):
    """Requests wait until the test lets them go."""
    gate = asyncio.Event()

    async def serve(call, principal, downstream):
        await gate.wait()
        downstream.respond(200, (), b"late")

    door.gateway.serving = serve
    return gate


async def test_a_unix_socket_is_served_like_any_other(door, tmp_path):
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(tmp_path / "http.sock"))
    sock.listen()
    await door.server.start([sock])

    client = RawClient(*await asyncio.open_unix_connection(str(tmp_path / "http.sock")))

    assert (await client.ask(chat())).status == 200
    client.close()


async def test_a_listener_that_is_dropped_leaves_its_connections_and_the_others(door):
    other = listening()
    await door.server.start([other])
    client = await RawClient.connect(other.getsockname())
    address = other.getsockname()

    await door.server.stop_listening([other])

    assert (await client.ask(chat())).status == 200
    client.close()
    assert (await door.ask(chat())).status == 200
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(address)


async def test_to_drop_no_listener_drops_none(door):
    await door.server.stop_listening([])

    assert (await door.ask(chat())).status == 200


async def test_who_waits_to_be_accepted_is_served_before_a_listener_closes(door):
    waiting = []
    for _ in range(20):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(door.address)
        waiting.append(one)

    await door.server.stop_listening()

    for one in waiting:
        client = RawClient(*await asyncio.open_connection(sock=one))
        assert (await client.ask(chat())).status == 200
        client.close()


async def test_while_it_drains_each_answer_ends_its_connection(door, slow):
    client = await door.client()
    client.send(chat())
    await until(lambda: door.gateway.calls)
    drain = asyncio.create_task(door.server.drain(5))
    await asyncio.sleep(0)

    slow.set()
    reply = await client.reply()

    assert (reply.body, reply.closes) == (b"late", True)
    assert await client.rest() == b""
    await drain


async def test_an_idle_connection_may_still_ask_for_a_moment(door, monkeypatch):
    monkeypatch.setattr(server, "IDLE_GRACE", 0.8)
    asks, sleeps = await door.client(), await door.client()
    for client in (asks, sleeps):
        await client.ask(chat())
    drain = asyncio.create_task(door.server.drain(5))
    await asyncio.sleep(0.1)

    reply = await asks.ask(chat())

    assert (reply.status, reply.closes) == (200, True)
    assert await sleeps.rest() == b""
    await drain


async def test_a_request_that_has_begun_to_come_is_read_to_its_end(door, monkeypatch):
    monkeypatch.setattr(server, "IDLE_GRACE", 0.05)
    in_head, in_body = await door.client(), await door.client()
    whole = chat()
    in_head.send(whole[:30])
    in_body.send(whole[:-10])
    await until(lambda: door.server.connections == 2)
    await asyncio.sleep(0.02)
    drain = asyncio.create_task(door.server.drain(5))
    await asyncio.sleep(0.3)

    replies = [await in_head.ask(whole[30:]), await in_body.ask(whole[-10:])]

    assert [(reply.status, reply.closes) for reply in replies] == [(200, True)] * 2
    await drain


async def test_a_stream_that_ends_while_it_drains_frees_its_connection(door, monkeypatch):
    monkeypatch.setattr(server, "IDLE_GRACE", 0.05)
    gate = asyncio.Event()

    async def stream(call, principal, downstream):
        downstream.commit(200, ())
        await gate.wait()
        downstream.write(b"end")
        downstream.finish()

    door.gateway.serving = stream
    client = await door.client()
    client.send(chat())
    await client.reader.readuntil(b"\r\n\r\n")
    drain = asyncio.create_task(door.server.drain(5))
    await asyncio.sleep(0.1)
    gate.set()

    assert await client.rest() == b"3\r\nend\r\n0\r\n\r\n"
    await drain


async def test_a_drain_takes_no_longer_than_it_may(door, slow):
    client = await door.client()
    client.send(chat())
    await until(lambda: door.gateway.calls)

    async with asyncio.timeout(WITHIN):
        await door.server.drain(0.1)

    assert door.server.connections == 1


async def test_to_close_ends_whatever_is_left(door, slow):
    client = await door.client()
    client.send(chat())
    await until(lambda: door.gateway.calls)

    async with asyncio.timeout(WITHIN):
        await door.server.close()

    assert door.server.connections == 0
    assert [record.ending for record in door.records] == ["left"]


async def test_a_server_that_never_started_closes(gateway):
    await WebServer(Site(gateway, ())).close()


async def test_the_next_request_of_a_draining_connection_is_not_read(door, slow):
    client = await door.client()
    client.send(chat() + request("GET", "/livez"))
    await until(lambda: door.gateway.calls)
    drain = asyncio.create_task(door.server.drain(5))
    await asyncio.sleep(0)
    slow.set()

    first = await client.reply()

    assert first.closes
    assert await client.rest() == b""
    await drain
