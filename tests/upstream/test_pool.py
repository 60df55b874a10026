"""Which connection a call gets, and what becomes of it."""

import asyncio
import ssl

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.pool import Pools, PoolStats
from tests.fakes.calls import call, node, read_all
from tests.fakes.patience import WITHIN, until
from tests.fakes.rawserver import (
    CERTIFICATE,
    CHUNKED,
    LAST_CHUNK,
    Peer,
    RawServer,
    answers,
    chunk,
    json_answer,
)

OK = json_answer()


@pytest.fixture
async def pools():
    pools = Pools()
    yield pools
    pools.close()
    await asyncio.sleep(0)  # aborted transports close their sockets in the next turn


async def ask(pools: Pools, server: RawServer, **options) -> bytes:
    return await read_all(await call(pools, node(server.port), **options))


def stats(pools: Pools, server: RawServer) -> PoolStats:
    return pools.stats().get(node(server.port).url, PoolStats(0, 0, 0))


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(OK, id="length"),
        pytest.param(CHUNKED + chunk(b"x") + LAST_CHUNK, id="chunked"),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx", id="1.0"
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, id="interim"),
    ],
)
async def test_a_connection_whose_answer_ended_in_step_serves_the_next_call(pools, wire):
    async with RawServer(answers(wire)) as server:
        for _ in range(3):
            await ask(pools, server)

        assert stats(pools, server) == (1, 1, 1)
    assert len(server.peers) == 1


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(OK + b"HTTP/1.1 200", id="bytes behind the body"),
        pytest.param(CHUNKED + LAST_CHUNK + b"x", id="bytes behind the last chunk"),
        pytest.param(b"HTTP/1.1 204 None\r\n\r\nbody", id="body of an answer that has none"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", id="close"
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", id="HTTP/1.0"),
    ],
)
async def test_a_connection_that_is_out_of_step_or_done_serves_no_other(pools, wire):
    async with RawServer(answers(wire)) as server:
        for _ in range(3):
            await ask(pools, server)

        assert stats(pools, server) == (0, 0, 3)
    assert len(server.peers) == 3


@pytest.mark.parametrize(
    "gift", [b"HTTP/1.1 408 Request Timeout\r\n\r\n", None], ids=["bytes", "EOF"]
)
async def test_an_idle_connection_that_hears_anything_is_dropped(pools, gift):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await asyncio.sleep(0.02)
        if gift:
            await peer.send(gift)
            await peer.left()

    async with RawServer(play) as server:
        await ask(pools, server)
        assert stats(pools, server).idle == 1

        await until(lambda: stats(pools, server) == (0, 0, 1))


def closes_reused(how: str, *, times: int = 1):
    """Answer a first request; end the connection without a byte when the second comes."""

    async def play(peer: Peer) -> None:
        if peer.number >= times:
            return await answers(OK)(peer)
        await peer.request()
        await peer.send(OK)
        if how == "before the body is read":
            await peer.reader.readuntil(b"\r\n\r\n")
            return peer.reset()
        await peer.request()
        return peer.reset() if how == "reset" else None

    return play


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_stale_connection_is_replaced_by_a_new_one_whatever_the_method(pools, method, how):
    async with RawServer(closes_reused(how)) as server:
        for _ in range(2):
            assert await ask(pools, server, method=method) == b'{"ok": true}'

        assert stats(pools, server).created == 2


async def test_a_connection_that_breaks_while_a_big_body_is_written_is_replaced(pools):
    body = b"x" * 5_000_000
    async with RawServer(closes_reused("before the body is read")) as server:
        await ask(pools, server)

        assert await ask(pools, server, body=body) == b'{"ok": true}'
    assert server.requests[-1].body == body


async def test_the_repeat_is_never_on_another_reused_connection(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        await together.wait()
        await peer.send(OK)
        if peer.number < 3:
            await peer.request()  # and closes
        else:
            await answers(OK)(peer)

    together = asyncio.Event()
    async with RawServer(play) as server:
        first = [asyncio.ensure_future(ask(pools, server)) for _ in range(3)]
        await until(lambda: len(server.requests) == 3)
        together.set()
        await asyncio.gather(*first)
        assert stats(pools, server).idle == 3

        assert await ask(pools, server) == b'{"ok": true}'

    assert len(server.peers) == 4
    assert len(server.requests) == 5


async def test_a_call_is_repeated_once_only(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await peer.send(OK)
            await peer.request()

    async with RawServer(play) as server:
        await ask(pools, server)

        with pytest.raises(UpstreamError) as fault:
            await ask(pools, server)

    assert fault.value.kind is FaultKind.LOST
    assert len(server.requests) == 3


async def test_a_new_connection_that_closes_before_any_byte_is_a_fault(pools):
    async def play(peer: Peer) -> None:
        await peer.request()

    async with RawServer(play) as server:
        with pytest.raises(UpstreamError) as fault:
            await ask(pools, server)

    assert fault.value.kind is FaultKind.LOST
    assert len(server.requests) == 1


async def test_an_answer_that_has_begun_is_never_asked_for_again(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.send(b"H")

    async with RawServer(play) as server:
        await ask(pools, server)

        with pytest.raises(UpstreamError) as fault:
            await ask(pools, server)

    assert fault.value.kind is FaultKind.CUT
    assert len(server.requests) == 2


async def test_a_node_found_dead_is_not_asked_again_on_a_new_connection(pools):
    handed = []

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        handed[0](UpstreamError(FaultKind.DEAD))
        await peer.left()

    async with RawServer(play) as server:
        await ask(pools, server)

        with pytest.raises(UpstreamError) as fault:
            await ask(pools, server, on_sent=handed.append)

    assert fault.value.kind is FaultKind.DEAD
    assert len(server.requests) == 2


async def test_a_peer_that_closed_when_the_connection_was_taken_is_replaced(pools):
    async with RawServer(answers(OK)) as server:
        await ask(pools, server)
        (connection,) = pools._pools[("http", "127.0.0.1", server.port)]._idle
        connection.transport.close()

        assert await ask(pools, server) == b'{"ok": true}'
    assert len(server.peers) == 2


async def test_a_connection_that_closed_before_it_could_be_asked_is_lost(pools, monkeypatch):
    connect = "llmgw.upstream.pool.connect"

    async def slowly(url, factory, **options):
        connection = await real(url, factory, **options)
        await until(lambda: connection.gone)
        return connection

    async def play(peer: Peer) -> None:
        return None

    from llmgw.upstream.address import connect as real

    monkeypatch.setattr(connect, slowly)
    async with RawServer(play) as server:
        with pytest.raises(UpstreamError) as fault:
            await ask(pools, server)

        assert fault.value.kind is FaultKind.LOST
        assert stats(pools, server) == (0, 0, 1)


def idle(pools, server):
    """Those of the server, the one idle for the longest first."""
    return pools._pools[("http", "127.0.0.1", server.port)]._idle


async def test_the_connection_used_last_goes_first(pools):
    async with RawServer(answers(OK)) as server:
        await asyncio.gather(*(ask(pools, server) for _ in range(3)))
        first, second, last = idle(pools, server)
        for _ in range(3):
            await ask(pools, server)
            assert list(idle(pools, server)) == [first, second, last]

        assert stats(pools, server) == (3, 3, 3)


@pytest.mark.parametrize("later", [0, 1], ids=["all expire", "the one used later stays"])
async def test_connections_expire_when_they_are_idle_for_too_long(later):
    pools = Pools(idle_timeout=0.5)
    async with RawServer(answers(OK)) as server:
        await asyncio.gather(*(ask(pools, server) for _ in range(3)))
        assert stats(pools, server) == (3, 3, 3)
        idle(pools, server)[-1].idle_since += later * 3600

        await until(lambda: stats(pools, server) == (later, later, 3))
    pools.close()


async def test_a_connection_idle_for_too_long_is_not_taken(pools):
    async with RawServer(answers(OK)) as server:
        await ask(pools, server)
        idle(pools, server)[0].idle_since -= 4.0

        await ask(pools, server)

        assert stats(pools, server) == (1, 1, 2)


async def test_what_is_idle_is_bounded_and_what_is_open_is_not():
    pools = Pools(max_idle=2)
    async with RawServer(answers(OK)) as server:
        await asyncio.gather(*(ask(pools, server) for _ in range(5)))

        assert stats(pools, server) == (2, 2, 5)
    pools.close()


def held_answer(go: asyncio.Event):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        await go.wait()
        await peer.send(chunk(b"done") + LAST_CHUNK)
        await peer.left()

    return play


async def test_a_reload_keeps_what_stays_and_lets_busy_calls_finish(pools):
    go = asyncio.Event()
    async with RawServer(answers(OK)) as stays, RawServer(held_answer(go)) as leaves:
        await ask(pools, stays)
        busy = await call(pools, node(leaves.port))
        pools.keep([node(stays.port, prefix="/now/elsewhere").url])
        assert stats(pools, stays) == (1, 1, 1)
        go.set()

        assert await read_all(busy) == b"done"
        await asyncio.wait_for(leaves.peers[0].over.wait(), WITHIN)
        assert list(pools.stats()) == [node(stays.port).url]


async def test_a_reload_closes_idle_connections_to_nodes_that_left(pools):
    async with RawServer(answers(OK)) as server:
        await ask(pools, server)
        pools.keep([])

        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)
        assert pools.stats() == {}


async def test_a_call_that_began_before_a_reload_may_still_connect(pools):
    async with RawServer(answers(OK)) as server:
        await ask(pools, server)
        pools.keep([])

        assert await ask(pools, server) == b'{"ok": true}'


async def test_a_stop_cuts_what_still_runs_and_repeats_nothing(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.left()

    async with RawServer(play) as server, RawServer(held_answer(asyncio.Event())) as streams:
        await ask(pools, server)
        waiting = asyncio.ensure_future(ask(pools, server))
        reading = await call(pools, node(streams.port))
        await until(lambda: len(server.requests) == 2)
        pools.close()

        with pytest.raises(UpstreamError) as lost:
            await waiting
        with pytest.raises(UpstreamError) as cut:
            await reading.read()
        assert (lost.value.kind, cut.value.kind) == (FaultKind.LOST, FaultKind.CUT)
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)
    assert len(server.peers) == 1


async def test_upstreams_on_one_host_and_port_share_their_connections(pools):
    async with RawServer(answers(OK)) as server:
        await read_all(await call(pools, node(server.port, prefix="/a")))
        await read_all(await call(pools, node(server.port, prefix="/b")))

        assert pools.stats() == {node(server.port).url: (1, 1, 1)}
    assert [one.line for one in server.requests] == [
        "POST /a/v1/x HTTP/1.1",
        "POST /b/v1/x HTTP/1.1",
    ]


async def test_a_request_that_could_smuggle_opens_nothing(pools):
    async with RawServer(answers(OK)) as server:
        with pytest.raises(ValueError, match="line end"):
            await ask(pools, server, headers=(("a", "b\r\nc: d"),))

    assert server.peers == []


async def test_calls_over_tls_keep_their_connection():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    pools = Pools(tls=ssl.create_default_context(cafile=CERTIFICATE))
    async with RawServer(
        answers(OK, CHUNKED + chunk(b"x" * 100_000) + LAST_CHUNK), tls=context
    ) as server:
        upstream = node(server.port, scheme="https", host="localhost")
        assert await read_all(await call(pools, upstream)) == b'{"ok": true}'
        assert len(await read_all(await call(pools, upstream, body=b"x" * 300_000))) == 100_000

        assert pools.stats() == {upstream.url: (1, 1, 1)}
        pools.close()
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)
    assert server.requests[0].values("host") == [f"localhost:{server.port}"]
