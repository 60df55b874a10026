"""One call on one connection, against a server that sends exactly what the test says."""

import asyncio
import gc
import weakref

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.exchange import MAX_UNREAD
from llmgw.upstream.pool import Pools
from tests.fakes.calls import Collected, call, node, read_all
from tests.fakes.patience import WITHIN, at_rest
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, Peer, RawServer, answers, chunk, json_answer

UNTIL_EOF = b"HTTP/1.1 200 OK\r\n\r\n"
NODE_DEAD = UpstreamError(FaultKind.DEAD, "node is dead")


@pytest.fixture
async def pools():
    pools = Pools()
    yield pools
    pools.close()
    await asyncio.sleep(0)  # aborted transports close their sockets in the next turn


def sends(*pieces: bytes, then: str = "close"):
    """Answer the first request of each connection with these pieces, then end it so."""

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(*pieces)
        if then == "reset":
            await asyncio.sleep(0.02)  # or the reset overtakes what was sent
            peer.reset()
        elif then == "wait":
            await peer.left()

    return play


async def outcome(pools, server, *, spliced: bool = False) -> tuple[bytes, FaultKind | None]:
    """The body bytes of one call, and what it ended with."""
    exchange = await call(pools, node(server.port))
    if spliced:
        sink = Collected()
        exchange.splice_to(sink)
        await sink.over.wait()
        assert len(sink.ends) == 1
        return sink.body, sink.ends[0] and sink.ends[0].kind
    body = b""
    try:
        while data := await exchange.read():
            body += data
    except UpstreamError as fault:
        return body, fault.kind
    return body, None


SPLICED = pytest.mark.parametrize("spliced", [False, True], ids=["pulled", "pushed"])


async def test_a_request_goes_out_whole_and_its_answer_comes_back(pools):
    async with RawServer(answers(json_answer(b'{"a": 1}', status=404))) as server:
        upstream = node(server.port, prefix="/engine")

        exchange = await call(pools, upstream, headers=(("X-A", "b"),), body=b"\x00body")

        assert exchange.head.status == 404
        assert exchange.head.header("content-type") == "application/json"
        assert exchange.head.length == 8
        assert await read_all(exchange) == b'{"a": 1}'
        assert await exchange.read() == b""
    (received,) = server.requests
    assert received.line == "POST /engine/v1/x HTTP/1.1"
    assert received.values("host") == [f"127.0.0.1:{server.port}"]
    assert received.values("x-a") == ["b"]
    assert received.body == b"\x00body"


FRAMINGS = [
    pytest.param(json_answer(b"hello"), b"hello", id="length"),
    pytest.param(CHUNKED + chunk(b"he") + chunk(b"llo") + LAST_CHUNK, b"hello", id="chunked"),
    pytest.param(UNTIL_EOF + b"hello", b"hello", id="until EOF"),
    pytest.param(b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello", id="HTTP/1.0"),
    pytest.param(b"HTTP/1.1 100 C\r\n\r\n" + json_answer(b"hello"), b"hello", id="interim"),
]


@SPLICED
@pytest.mark.parametrize(("wire", "body"), FRAMINGS)
async def test_an_answer_is_the_same_in_any_cut(pools, wire, body, spliced):
    async def play(peer: Peer) -> None:
        await peer.request()
        cut = peer.number
        await peer.send(wire[:cut], wire[cut:])

    async with RawServer(play) as server:
        for _ in range(len(wire)):
            assert await outcome(pools, server, spliced=spliced) == (body, None)
            pools.keep(())


@SPLICED
@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize(("wire", "body"), FRAMINGS)
async def test_an_answer_that_ends_anywhere_inside_is_lost_or_cut(
    pools, wire, body, then, spliced
):
    step = 1 if then == "close" else 9
    seen = []
    for cut in range(0, len(wire), step):
        async with RawServer(sends(wire[:cut], then=then)) as server:
            try:
                part, fault = await outcome(pools, server, spliced=spliced)
            except UpstreamError as before_head:
                part, fault = b"", before_head.kind
            seen.append(fault)
            assert body.startswith(part)
            assert (fault is FaultKind.LOST) is (cut == 0)
    ends_with_eof = b"content-length" not in wire and b"chunked" not in wire and then == "close"
    assert set(seen) - {FaultKind.LOST} == {FaultKind.CUT} | ({None} if ends_with_eof else set())


@SPLICED
async def test_a_reset_is_no_end_of_a_body_until_eof(pools, spliced):
    async with RawServer(sends(UNTIL_EOF + b"hello", then="reset")) as server:
        assert await outcome(pools, server, spliced=spliced) == (b"hello", FaultKind.CUT)


@SPLICED
async def test_bad_framing_ends_the_call_behind_what_was_good(pools, spliced):
    wire = CHUNKED + chunk(b"hello") + b"zz\r\n"
    async with RawServer(sends(wire, then="wait")) as server:
        assert await outcome(pools, server, spliced=spliced) == (b"hello", FaultKind.INVALID)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"nonsense\r\n\r\n", id="malformed"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: %s\r\n\r\n" % (b"x" * 70_000), id="giant head"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            id="both lengths",
        ),
        pytest.param(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", id="101"),
    ],
)
async def test_an_invalid_head_is_a_fault_and_closes_the_connection(pools, wire):
    async with RawServer(sends(wire, then="wait")) as server:
        with pytest.raises(UpstreamError) as fault:
            await call(pools, node(server.port))

        assert fault.value.kind is FaultKind.INVALID
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


@pytest.mark.parametrize(
    ("method", "wire"),
    [
        pytest.param("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", id="HEAD"),
        pytest.param("POST", b"HTTP/1.1 204 None\r\n\r\n", id="204"),
        pytest.param("GET", b"HTTP/1.1 304 Same\r\ncontent-length: 9\r\n\r\n", id="304"),
    ],
)
async def test_an_answer_without_a_body_leaves_the_connection_for_the_next(pools, method, wire):
    async with RawServer(answers(wire)) as server:
        for _ in range(2):
            exchange = await call(pools, node(server.port), method=method, body=b"")
            assert await exchange.read() == b""
    assert len(server.peers) == 1


async def test_no_head_within_the_header_timeout(pools):
    async with RawServer(sends(b"HTTP/1.1 200 OK\r\n", then="wait")) as server:
        with pytest.raises(UpstreamError) as fault:
            await call(pools, node(server.port), header_timeout=0.05)

        assert fault.value.kind is FaultKind.TIMEOUT
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


async def test_a_head_in_time_ends_the_header_timeout(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        await asyncio.sleep(0.6)
        await peer.send(chunk(b"late") + LAST_CHUNK)

    async with RawServer(play) as server:
        exchange = await call(pools, node(server.port), header_timeout=0.5)

        assert await read_all(exchange) == b"late"


async def test_a_header_timeout_that_is_due_with_the_head_comes_too_late(pools):
    async with RawServer(answers(json_answer(b"hello"))) as server:
        exchange = await call(pools, node(server.port))
        exchange._time_out()

        assert await read_all(exchange) == b"hello"


async def test_a_slow_drip_is_followed(pools):
    wire = CHUNKED + chunk(b"drip") + LAST_CHUNK
    async with RawServer(sends(*(bytes([one]) for one in wire))) as server:
        assert await outcome(pools, server) == (b"drip", None)


async def test_a_cancelled_open_closes_its_connection(pools):
    async with RawServer(sends(then="wait")) as server:
        opening = asyncio.ensure_future(call(pools, node(server.port)))
        await server.asked.wait()
        opening.cancel()

        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


async def test_a_cancelled_read_loses_nothing(pools):
    go = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        await go.wait()
        await peer.send(chunk(b"all of it") + LAST_CHUNK)

    async with RawServer(play) as server:
        exchange = await call(pools, node(server.port))
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(exchange.read(), 0.01)
        go.set()

        assert await read_all(exchange) == b"all of it"


async def test_an_abort_closes_the_upstream_connection_at_once(pools):
    async with RawServer(sends(CHUNKED + chunk(b"x"), then="wait")) as server:
        exchange = await call(pools, node(server.port))

        exchange.abort()
        exchange.abort()

        assert not pools.stats()[node(server.port).url].open
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)
        with pytest.raises(UpstreamError, match="aborted"):
            await exchange.read()


async def test_an_abort_after_a_whole_body_keeps_body_and_connection(pools):
    async with RawServer(answers(json_answer(b"hello"))) as server:
        exchange = await call(pools, node(server.port))
        exchange.abort()

        assert await read_all(exchange) == b"hello"
        await call(pools, node(server.port))
    assert len(server.peers) == 1


async def test_an_aborted_call_tells_its_sink_nothing_more(pools):
    async with RawServer(sends(CHUNKED + chunk(b"x"), then="wait")) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        exchange.splice_to(sink)

        exchange.abort()
        await server.peers[0].over.wait()

        assert sink.ends == []


@pytest.mark.parametrize("wire", [CHUNKED + chunk(b"x") + LAST_CHUNK, CHUNKED + b"1\r\nxzz"])
async def test_a_sink_may_abort_from_within(pools, wire):
    async with RawServer(sends(CHUNKED, then="wait")) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        sink.feed = lambda data: exchange.abort()
        exchange.splice_to(sink)

        exchange.receive(wire[len(CHUNKED) :])
        await server.peers[0].over.wait()

        assert sink.ends == []
        assert not pools.stats()[node(server.port).url].open


async def test_a_pending_open_can_be_failed_from_outside(pools):
    handed = []
    async with RawServer(sends(then="wait")) as server:
        opening = asyncio.ensure_future(call(pools, node(server.port), on_sent=handed.append))
        await server.asked.wait()
        handed[0](NODE_DEAD)

        with pytest.raises(UpstreamError) as fault:
            await opening
        assert fault.value is NODE_DEAD
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


async def test_a_pending_read_can_be_failed_from_outside(pools):
    async with RawServer(sends(CHUNKED, then="wait")) as server:
        exchange = await call(pools, node(server.port))
        asyncio.get_running_loop().call_later(0.01, exchange.fail, NODE_DEAD)

        with pytest.raises(UpstreamError) as fault:
            await exchange.read()
        assert fault.value is NODE_DEAD


async def test_a_spliced_call_can_be_failed_from_outside_once(pools):
    async with RawServer(sends(CHUNKED, then="wait")) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        exchange.splice_to(sink)

        exchange.fail(NODE_DEAD)
        exchange.fail(UpstreamError(FaultKind.IDLE))

        assert sink.ends == [NODE_DEAD]
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


async def test_what_was_not_read_is_pushed_first_when_a_call_is_spliced(pools):
    async with RawServer(sends(CHUNKED + chunk(b"one"), chunk(b"two"), LAST_CHUNK)) as server:
        exchange = await call(pools, node(server.port))
        first = await exchange.read()
        sink = Collected()
        exchange.splice_to(sink)
        await sink.over.wait()

    assert first + sink.body == b"onetwo"
    assert sink.ends == [None]


async def test_a_call_that_has_ended_is_spliced_at_once(pools):
    async with RawServer(answers(json_answer(b"hello"))) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        exchange.splice_to(sink)

        assert (sink.body, sink.ends) == (b"hello", [None])


BIG = b"x" * 65536


async def flood(peer: Peer) -> None:
    """Send 64 MiB, as fast as they are taken."""
    await peer.request()
    await peer.send(CHUNKED)
    for _ in range(1024):
        await peer.send(chunk(BIG))
        flood.sent += len(BIG)
    await peer.send(LAST_CHUNK)


async def test_what_is_not_read_is_bounded(pools):
    flood.sent = 0
    async with RawServer(flood) as server:
        exchange = await call(pools, node(server.port))
        await at_rest(lambda: flood.sent)

        assert len(await exchange.read()) <= MAX_UNREAD + 512 * 1024  # and one read of the socket
        assert flood.sent < 32 * 1024 * 1024
        exchange.abort()


async def test_a_paused_call_is_not_read_and_goes_on_when_resumed(pools):
    flood.sent = 0
    async with RawServer(flood) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        exchange.pause()
        exchange.splice_to(sink)
        await at_rest(lambda: flood.sent)
        held = len(sink.body)
        exchange.resume()
        await sink.over.wait()

    assert held < 1024 * 1024
    assert len(sink.body) == 1024 * len(BIG)
    assert sink.ends == [None]


async def test_a_full_buffer_and_a_pause_both_have_to_end(pools):
    flood.sent = 0
    async with RawServer(flood) as server:
        exchange = await call(pools, node(server.port))
        stopped = await at_rest(lambda: flood.sent)
        exchange.resume()  # nobody paused: the buffer stays full
        assert await at_rest(lambda: flood.sent) == stopped
        exchange.pause()
        await exchange.read()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(exchange.read(), 0.05)

        exchange.resume()

        assert await exchange.read()
        exchange.abort()
        exchange.pause()
        exchange.resume()


async def test_a_sink_that_pauses_at_the_last_bytes_leaves_a_connection_that_listens(pools):
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        await go.wait()
        await peer.send(chunk(b"x") + LAST_CHUNK)
        await peer.request()
        await peer.send(json_answer(b"next"))

    go = asyncio.Event()
    async with RawServer(play) as server:
        exchange = await call(pools, node(server.port))
        sink = Collected()
        sink.feed = lambda data: exchange.pause()
        exchange.splice_to(sink)
        go.set()
        await sink.over.wait()

        assert await read_all(await call(pools, node(server.port))) == b"next"
    assert len(server.peers) == 1


async def test_a_big_body_is_sent_to_a_server_that_reads_slowly(pools):
    body = bytes(range(256)) * 40_000
    async with RawServer(answers(json_answer())) as server:
        exchange = await call(pools, node(server.port), body=body)

        assert await read_all(exchange) == b'{"ok": true}'
    assert server.requests[0].body == body


async def test_an_answer_before_the_request_is_sent_is_read_and_the_connection_closed(pools):
    async def play(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(json_answer(b"too large", status=413))
        await gone.wait()

    gone = asyncio.Event()
    async with RawServer(play) as server:
        exchange = await call(pools, node(server.port), body=b"x" * 50_000_000)

        assert exchange.head.status == 413
        assert await read_all(exchange) == b"too large"
        stats = pools.stats()[node(server.port).url]
        assert (stats.open, stats.idle) == (0, 0)
        gone.set()


@pytest.mark.parametrize("then", ["wait", "reset"], ids=["whole", "cut"])
async def test_an_ended_stream_leaves_no_circle_of_references_behind(pools, then):
    """A sink holds its exchange and all that was retained of the stream. Garbage of thousands of
    streams would lie about until the collector comes by.
    """
    pieces = (CHUNKED, chunk(b"data"), *((LAST_CHUNK,) if then == "wait" else ()))
    async with RawServer(sends(*pieces, then=then)) as server:
        sink = Collected()
        sink.exchange = await call(pools, node(server.port))
        sink.exchange.splice_to(sink)
        over = sink.over
        await over.wait()
        await asyncio.sleep(0)

        seen = weakref.ref(sink)
        gc.disable()
        try:
            del sink

            assert seen() is None
        finally:
            gc.enable()
