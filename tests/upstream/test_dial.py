"""Calls that begin before their connection is made."""

import asyncio
import contextlib
import errno
import socket
from unittest import mock

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind
from llmgw.daemon.loop import FairLoop
from llmgw.upstream import dial as module
from llmgw.upstream.pool import Pool
from tests.fakes.patience import WITHIN, until
from tests.fakes.rawserver import RawServer, answers, json_answer

HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n"
OK = json_answer(b"{}")


def pool_of(port, host="127.0.0.1", scheme="http"):
    return Pool(BaseUrl(scheme, host, port, ""), tls=None, idle_timeout=4.0, max_idle=4)


@contextlib.contextmanager
def under_way():
    """As to another host: what is begun is not made at once."""
    connect, begun = socket.socket.connect_ex, set()

    def begin(self, place):
        if self in begun:
            return errno.EALREADY
        begun.add(self)
        connect(self, place)
        return errno.EINPROGRESS

    with mock.patch.object(socket.socket, "connect_ex", begin):
        yield


@contextlib.contextmanager
def closed_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextlib.asynccontextmanager
async def pooled(*args, **options):
    pool = pool_of(*args, **options)
    try:
        yield pool
    finally:
        pool.abort()
        await asyncio.sleep(0)


async def over(exchange):
    await until(lambda: exchange.ended)
    return exchange.fault


@pytest.mark.parametrize("to", [contextlib.nullcontext, under_way], ids=["here", "elsewhere"])
async def test_what_is_begun_without_a_connection_is_sent_on_the_one_that_is_made(to):
    async with RawServer(answers(OK)) as server, pooled(server.port) as pool:
        with to():
            exchange = pool.begin(HEAD, b"{}", within=WITHIN)
        assert await over(exchange) is None

        assert (exchange.take(), exchange.head.status) == (b"{}", 200)
        again = pool.begin(HEAD, b"{}", within=WITHIN)
        assert await over(again) is None
        assert pool.stats() == (1, 1, 1)
    assert [one.body for one in server.requests] == [b"{}", b"{}"]


async def test_a_refusal_that_comes_later_ends_the_call_as_one_that_never_reached_its_upstream():
    with closed_port() as port:
        async with pooled(port) as pool:
            with under_way():
                exchange = pool.begin(HEAD, b"{}", within=WITHIN)
            fault = await over(exchange)

            assert (fault.kind, fault.detail) == (FaultKind.CONNECT, "refused")
            assert not exchange.stale
            assert pool.stats() == (0, 0, 1)


async def test_a_refusal_at_once_is_left_to_whoever_can_wait():
    async with pooled(9) as pool:
        with mock.patch.object(socket.socket, "connect_ex", return_value=errno.ENETUNREACH):
            assert pool.begin(HEAD, b"{}", within=WITHIN) is None
        assert pool.stats() == (0, 0, 0)


async def test_a_connection_that_is_not_made_in_time_is_given_up():
    async with RawServer(answers(OK)) as server, pooled(server.port) as pool:
        with under_way(), mock.patch.object(FairLoop, "add_writer"):
            exchange = pool.begin(HEAD, b"{}", within=0.01)
        fault = await over(exchange)

        assert (fault.kind, fault.detail) == (FaultKind.CONNECT, "timeout")
        assert pool.stats() == (0, 0, 1)


@pytest.mark.parametrize("how", ["abort", "stop"])
async def test_who_leaves_meanwhile_leaves_no_socket(how):
    async with RawServer(answers(OK)) as server, pooled(server.port) as pool:
        with under_way():
            exchange = pool.begin(HEAD, b"{}", within=WITHIN)
        if how == "abort":
            exchange.abort()
        else:
            pool.abort()

        assert exchange.ended
        assert exchange.fault.kind in (FaultKind.CUT, FaultKind.LOST)
        assert pool.stats()[:2] == (0, 0)
        await asyncio.sleep(0.01)
    assert server.requests == []


@pytest.mark.parametrize(
    ("host", "scheme"), [("localhost", "http"), ("127.0.0.1", "https")], ids=["a name", "TLS"]
)
async def test_what_takes_more_than_a_connect_takes_a_task(host, scheme):
    async with pooled(9, host=host, scheme=scheme) as pool:
        assert pool.begin(HEAD, b"{}", within=WITHIN) is None


async def test_so_does_a_loop_that_takes_no_socket_at_once():
    with mock.patch.object(module.asyncio, "get_running_loop", return_value=object()):
        assert module.adopter() is None


async def test_a_host_without_descriptors_blames_no_upstream():
    async with pooled(9) as pool:
        with mock.patch.object(module.socket, "socket", side_effect=OSError(errno.EMFILE, "no")):
            assert pool.begin(HEAD, b"{}", within=WITHIN) is None
