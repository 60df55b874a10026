"""Bounded reads of small documents: what arrives, what a fault is called, what goes out."""

import asyncio
import gzip
import logging
import socket
import time
import zlib

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream import client as client_module
from llmgw.upstream.client import PARSED_INLINE, WatchClient, headers_for, parsed
from tests.builders import account, node
from tests.fakes.descriptors import no_descriptors
from tests.fakes.patience import WITHIN
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, RawServer, answers, chunk, json_answer

HEADERS = (("user-agent", "test"),)


@pytest.fixture
async def client():
    made = WatchClient()
    yield made
    await made.close()


async def get(client: WatchClient, port: int, *, within: float = 5.0, max_bytes: int = 1000):
    url = BaseUrl("http", "127.0.0.1", port)
    return await client.get(url, "/v1/models", HEADERS, within=within, max_bytes=max_bytes)


async def fault(client: WatchClient, port: int, **limits: float) -> FaultKind:
    with pytest.raises(UpstreamError) as raised:
        await get(client, port, **limits)
    assert "CANARY" not in str(raised.value)
    assert raised.value.__cause__ is None  # a foreign error may quote the upstream
    return raised.value.kind


def answer(body: bytes, *lines: str, length: int | None = None, status: int = 200) -> bytes:
    declared = len(body) if length is None else length
    head = [f"HTTP/1.1 {status} CANARY", f"content-length: {declared}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "status", [200, 204, 301, 307, 404, 500, 503], ids=lambda status: f"status {status}"
)
async def test_a_status_is_an_answer_and_no_redirect_is_followed(client, status):
    location = "location: http://127.0.0.1:1/elsewhere"
    async with RawServer(answers(answer(b"", location, status=status))) as server:
        reply = await get(client, server.port)

        assert (reply.status, len(server.requests)) == (status, 1)


async def test_a_body_is_read_to_the_limit_and_not_past_it(client):
    async with RawServer(answers(answer(b"x" * 1000), answer(b"x" * 1001))) as server:
        whole = await get(client, server.port)
        cut = await get(client, server.port)

    assert (len(whole.body), whole.is_whole) == (1000, True)
    assert (len(cut.body), cut.is_whole) == (1000, False)


async def test_a_body_without_end_is_dropped_with_its_connection(client):
    closed = asyncio.Event()

    async def play(peer):
        await peer.request()
        await peer.send(CHUNKED, *[chunk(b"x" * 400)] * 3)
        await peer.left()
        closed.set()

    async with RawServer(play) as server:
        reply = await get(client, server.port)
        await closed.wait()

    assert not reply.is_whole


async def test_chunks_are_put_together(client):
    pieces = CHUNKED + chunk(b'{"da') + chunk(b'ta":[]}') + LAST_CHUNK
    async with RawServer(answers(pieces)) as server:
        reply = await get(client, server.port)

    assert reply.body == b'{"data":[]}'


class TestFaults:
    async def test_a_refused_connection(self, client):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))

            assert await fault(client, free.getsockname()[1]) is FaultKind.CONNECT

    async def test_a_connection_that_is_never_made(self, client):
        """A full backlog drops the handshake, as a machine without power does."""
        with socket.socket() as full, socket.socket() as first, socket.socket() as second:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for waiting in (first, second):
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())

            port = full.getsockname()[1]
            assert await fault(client, port, within=0.1) is FaultKind.CONNECT

    async def test_a_name_that_nobody_knows(self, client):
        url = BaseUrl("http", "nobody.invalid", 80)
        with pytest.raises(UpstreamError) as raised:
            await client.get(url, "/", HEADERS, within=5, max_bytes=10)

        assert raised.value.kind is FaultKind.CONNECT

    async def test_a_process_without_descriptors(self, client):
        """It says nothing of the upstream."""
        async with RawServer(answers(json_answer())) as server:
            with no_descriptors():
                assert await fault(client, server.port) is FaultKind.EXHAUSTED

            assert (await get(client, server.port)).status == 200
            with no_descriptors():  # a connection that is there needs none
                assert (await get(client, server.port)).status == 200

    async def test_a_path_that_cannot_be_sent(self, client):
        url = BaseUrl("http", "127.0.0.1", 1)
        with pytest.raises(UpstreamError) as raised:
            await client.get(url, "/a b", HEADERS, within=5, max_bytes=10)

        assert raised.value.kind is FaultKind.INVALID

    async def test_silence_on_a_connection(self, client):
        async def play(peer):
            await peer.request()
            await peer.left()

        async with RawServer(play) as server:
            assert await fault(client, server.port, within=0.1) is FaultKind.TIMEOUT

    async def test_silence_on_a_connection_that_is_used_again(self, client):
        async def play(peer):
            await peer.request()
            await peer.send(json_answer())
            await peer.left()

        async with RawServer(play) as server:
            await get(client, server.port)

            assert await fault(client, server.port, within=0.1) is FaultKind.TIMEOUT
            assert len(server.peers) == 1

    async def test_a_slow_drip(self, client):
        async def play(peer):
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            while True:
                await peer.send(b"x")
                await asyncio.sleep(0.01)

        async with RawServer(play) as server:
            assert await fault(client, server.port, within=0.1) is FaultKind.TIMEOUT

    @pytest.mark.parametrize("how", ["close", "reset"])
    async def test_an_end_without_an_answer(self, client, how):
        async def play(peer):
            await peer.request()
            if how == "reset":
                peer.reset()

        async with RawServer(play) as server:
            assert await fault(client, server.port) is FaultKind.LOST

    @pytest.mark.parametrize("how", ["close", "reset"])
    async def test_an_end_within_the_answer(self, client, how):
        async def play(peer):
            await peer.request()
            await peer.send(answer(b"CANARY", length=100))
            if how == "reset":
                peer.reset()

        async with RawServer(play) as server:
            assert await fault(client, server.port) is FaultKind.CUT

    @pytest.mark.parametrize(
        "sent",
        [
            b"CANARY\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: CANARY\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: " + b"CANARY" * 20_000 + b"\r\n\r\n",
        ],
        ids=["not HTTP", "a broken length", "an endless header"],
    )
    async def test_an_answer_that_is_none(self, client, sent):
        async with RawServer(answers(sent)) as server:
            assert await fault(client, server.port) is FaultKind.INVALID

    async def test_no_tls_where_it_was_expected(self, client):
        async def play(peer):
            await peer.send(b"220 this is a mail server\r\n")

        async with RawServer(play) as server:
            url = BaseUrl("https", "127.0.0.1", server.port)
            with pytest.raises(UpstreamError) as raised:
                await client.get(url, "/", HEADERS, within=5, max_bytes=10)

        assert raised.value.kind is FaultKind.CONNECT


class TestCodings:
    BODY = b'{"data":[]}'

    @pytest.mark.parametrize(
        ("coding", "pack"),
        [("gzip", gzip.compress), ("X-GZip", gzip.compress), ("deflate", zlib.compress)],
    )
    async def test_a_body_that_comes_packed_all_the_same_is_unpacked(self, client, coding, pack):
        sent = answer(pack(self.BODY), f"content-encoding: {coding}")
        async with RawServer(answers(sent)) as server:
            reply = await get(client, server.port)

        assert reply.body == self.BODY

    async def test_a_bomb_is_unpacked_to_the_limit_and_not_past_it(self, client):
        bomb = gzip.compress(b"\0" * 500_000)
        assert len(bomb) < 1000
        async with RawServer(answers(answer(bomb, "content-encoding: gzip"))) as server:
            reply = await get(client, server.port)

        assert (len(reply.body), reply.is_whole) == (1000, False)

    @pytest.mark.parametrize(
        ("sent", "kind"),
        [
            pytest.param(answer(b"x", "content-encoding: br"), FaultKind.INVALID, id="unasked"),
            pytest.param(
                answer(b"x" * 9, "content-encoding: gzip"), FaultKind.INVALID, id="no gzip"
            ),
            pytest.param(
                answer(gzip.compress(BODY)[:-9], "content-encoding: gzip"), FaultKind.CUT, id="cut"
            ),
        ],
    )
    async def test_one_that_cannot_be_unpacked_is_a_fault(self, client, sent, kind):
        async with RawServer(answers(sent)) as server:
            assert await fault(client, server.port) is kind


class TestOut:
    async def test_connections_are_used_again(self, client):
        async with RawServer(answers(json_answer())) as server:
            for _ in range(3):
                await get(client, server.port)

            assert (len(server.peers), len(server.requests)) == (1, 3)

    async def test_a_connection_that_the_server_closed_meanwhile_is_no_failure(self, client):
        async def play(peer):
            await peer.request()
            await peer.send(json_answer())

        async with RawServer(play) as server:
            await get(client, server.port)

            assert (await get(client, server.port)).status == 200

    async def test_one_that_does_not_stay_open_is_asked_once_more_and_not_for_ever(self, client):
        async def play(peer):
            await peer.request()
            if peer.number == 0:
                await peer.send(json_answer())

        async with RawServer(play) as server:
            await get(client, server.port)

            assert await fault(client, server.port) is FaultKind.LOST
            assert len(server.peers) == 2

    async def test_one_that_was_idle_for_long_is_not_used_again_and_closed(self):
        closed = asyncio.Event()

        async def play(peer):
            await peer.request()
            await peer.send(json_answer())
            await peer.left()
            closed.set()

        impatient = WatchClient(keep_idle=0.0)
        async with RawServer(play) as server:
            for _ in range(2):
                await get(impatient, server.port)
            assert len(server.peers) == 2

            async with asyncio.timeout(WITHIN):
                await closed.wait()
        await impatient.close()

    async def test_many_are_closed_a_few_at_a_time(self, monkeypatch):
        monkeypatch.setattr(client_module, "MOST_SWEPT", 2)
        together, left = asyncio.Barrier(5), asyncio.Barrier(6)

        async def play(peer):
            await peer.request()
            await together.wait()
            await peer.send(json_answer())
            await peer.left()
            await left.wait()

        impatient = WatchClient(keep_idle=0.1)
        async with RawServer(play) as server:
            await asyncio.gather(*(get(impatient, server.port) for _ in range(5)))

            async with asyncio.timeout(WITHIN):
                await left.wait()
        await impatient.close()

    async def test_one_whose_asker_left_is_closed(self, client):
        closed = asyncio.Event()

        async def play(peer):
            await peer.request()
            await peer.left()
            closed.set()

        async with RawServer(play) as server:
            asking = asyncio.create_task(get(client, server.port))
            await server.asked.wait()
            asking.cancel()

            async with asyncio.timeout(WITHIN):
                await closed.wait()

    async def test_all_are_closed_at_the_end(self):
        closing = WatchClient()
        left = asyncio.Event()

        async def play(peer):
            await peer.request()
            await peer.send(json_answer())
            await peer.left()
            left.set()

        async with RawServer(play) as server:
            await get(closing, server.port)
            await closing.close()

            async with asyncio.timeout(WITHIN):
                await left.wait()

    async def test_no_cookie_is_kept_and_no_proxy_is_taken_from_the_environment(
        self, client, monkeypatch
    ):
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        async with RawServer(answers(answer(b"{}", "set-cookie: a=CANARY"))) as server:
            await get(client, server.port)
            await get(client, server.port)

            assert server.requests[1].values("cookie") == []

    async def test_the_path_goes_out_as_it_was_configured(self, client):
        async with RawServer(answers(json_answer())) as server:
            url = BaseUrl("http", "127.0.0.1", server.port, "/a%2Fb")
            await client.get(url, "/v1/models?limit=1", HEADERS, within=5, max_bytes=100)

            assert server.requests[0].line == "GET /a%2Fb/v1/models?limit=1 HTTP/1.1"

    async def test_many_nodes_are_read_at_once(self, client):
        together = asyncio.Barrier(150)

        async def play(peer):
            await peer.request()
            await together.wait()
            await peer.send(json_answer())

        async with RawServer(play) as server:
            replies = await asyncio.gather(*(get(client, server.port) for _ in range(150)))

        assert {reply.status for reply in replies} == {200}


class TestHeaders:
    def test_a_node_gets_its_credential(self):
        headers = headers_for(node("a", credential=(("authorization", "Bearer s"),)))

        assert dict(headers)["authorization"] == "Bearer s"
        assert dict(headers)["accept-encoding"] == "identity"

    def test_an_account_gets_its_own_headers_instead_of_ours(self):
        headers = headers_for(
            account(
                "a",
                headers=(("user-agent", "mine"), ("x-org", "1")),
                credential=(("api-key", "s"),),
            )
        )

        assert [value for name, value in headers if name == "user-agent"] == ["mine"]
        assert headers[-2:] == (("x-org", "1"), ("api-key", "s"))


class TestParsing:
    @pytest.mark.parametrize("size", [10, PARSED_INLINE + 1], ids=["small", "large"])
    async def test_a_document_is_parsed(self, size):
        assert await parsed(len, b"x" * size) == size

    async def test_a_large_one_does_not_stop_the_loop(self):
        went_on = asyncio.Event()
        loop = asyncio.get_running_loop()

        def parse(body: bytes) -> bool:
            loop.call_soon_threadsafe(went_on.set)
            end = time.monotonic() + 5
            while not went_on.is_set() and time.monotonic() < end:
                time.sleep(0.001)
            return went_on.is_set()

        assert await parsed(parse, b"x" * (PARSED_INLINE + 1))


async def test_nothing_of_it_is_logged(client, caplog):
    caplog.set_level(logging.DEBUG)
    async with RawServer(answers(b"CANARY\r\n\r\n")) as server:
        await fault(client, server.port)

    assert "CANARY" not in caplog.text
