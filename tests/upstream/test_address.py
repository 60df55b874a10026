"""Names, addresses, TCP and TLS: how a connection is made, and how it is not."""

import asyncio
import resource
import socket
import ssl
from contextlib import ExitStack, contextmanager

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream import address
from llmgw.upstream.address import connect
from tests.fakes.patience import WITHIN, until
from tests.fakes.rawserver import CERTIFICATE, Peer, RawServer


class Seen(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport):
        self.transport = transport


async def waits(peer: Peer) -> None:
    await peer.left()


async def reach(port: int, *, host="127.0.0.1", scheme="http", within=5.0, **options) -> Seen:
    return await connect(BaseUrl(scheme, host, port), Seen, within=within, **options)


async def failure(port: int, **options) -> str:
    with pytest.raises(UpstreamError) as fault:
        await reach(port, **options)
    assert fault.value.kind is FaultKind.CONNECT
    return fault.value.detail


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def silent_listener():
    """An address that answers no SYN: its accept queue is full."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            filler = sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()


def known_as(*hosts: str):
    """A resolver that knows these addresses of every name."""

    async def resolve(url: BaseUrl):
        kinds = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in hosts]
        return [
            (kind, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (one, url.port))
            for kind, one in zip(kinds, hosts, strict=True)
        ]

    return resolve


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_address_is_connected_to(host):
    async with RawServer(waits, host=host) as server:
        seen = await reach(server.port, host=host)

        await until(lambda: len(server.peers) == 1)
        seen.transport.abort()


async def test_a_silent_peer_is_given_up_after_30_seconds():
    async with RawServer(waits) as server:
        seen = await reach(server.port)
        sock = seen.transport.get_extra_info("socket")

        def option(name: int) -> int:
            return sock.getsockopt(socket.IPPROTO_TCP, name)

        assert option(socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        probes = option(socket.TCP_KEEPCNT) * option(socket.TCP_KEEPINTVL)
        assert option(socket.TCP_KEEPIDLE) + probes == 30
        assert option(socket.TCP_USER_TIMEOUT) == 30_000
        seen.transport.abort()


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["::1", "127.0.0.1"], id="IPv6 first"),
        pytest.param(["127.0.0.2", "127.0.0.3", "127.0.0.1"], id="the last of three"),
    ],
)
async def test_a_name_is_reached_where_one_of_its_addresses_answers(addresses):
    async with RawServer(waits) as server:
        seen = await reach(server.port, host="localhost", resolve=known_as(*addresses))

        assert seen.transport.get_extra_info("peername")[0] == "127.0.0.1"
        seen.transport.abort()


async def test_an_address_that_stays_silent_does_not_hold_up_the_next():
    with silent_listener() as silent:
        async with RawServer(waits) as server:

            async def resolve(url: BaseUrl):
                found = await known_as("127.0.0.1", "127.0.0.1")(url)
                return [(*found[0][:4], silent), found[1]]

            seen = await reach(server.port, host="node.test", resolve=resolve, within=2.0)

            assert seen.transport.get_extra_info("peername")[1] == server.port
            seen.transport.abort()


async def test_a_process_without_descriptors_does_not_blame_the_upstream():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with RawServer(waits) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with pytest.raises(UpstreamError) as fault:
                await reach(server.port)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        assert fault.value.kind is FaultKind.EXHAUSTED
        (await reach(server.port)).transport.abort()


async def test_localhost_is_resolved():
    async with RawServer(waits) as server:
        seen = await reach(server.port, host="localhost")

        seen.transport.abort()


async def test_nothing_listens():
    assert await failure(free_port()) == "refused"
    assert await failure(free_port(), host="x", resolve=known_as("::1", "127.0.0.1")) == "refused"


async def test_a_name_that_is_none():
    assert await failure(80, host="a" * 70 + ".invalid") == "name not resolved"


async def test_a_name_that_the_resolver_refuses():
    # A zone that does not exist is refused without traffic; uvloop leaves that to the kernel.
    assert await failure(80, host="fe80::1%none") in {"name not resolved", "unreachable"}


async def test_an_address_that_cannot_be_reached():
    # In a zone that does not exist: the kernel refuses at once, without traffic.
    async def resolve(url: BaseUrl):
        return [(socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("fe80::1", 80, 0, 9999))]

    assert await failure(80, host="x", resolve=resolve) == "unreachable"


async def test_the_time_to_connect_covers_the_resolver():
    async def resolve(url: BaseUrl):
        await asyncio.sleep(10)
        return []

    assert await failure(80, host="x", resolve=resolve, within=0.02) == "timeout"


async def test_the_time_to_connect_covers_tcp():
    with silent_listener() as (host, port):
        assert await failure(port, host=host, within=0.05) == "timeout"


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=CERTIFICATE)


def serving() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_tls_asks_for_the_host_by_name(host):
    names = []
    context = serving()
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    async with RawServer(waits, tls=context) as server:
        seen = await reach(server.port, host=host, scheme="https", tls=trusting())

        assert seen.transport.get_extra_info("ssl_object") is not None
        assert names == ["localhost" if host == "localhost" else None]
        seen.transport.abort()


async def test_a_certificate_that_nobody_vouches_for_is_refused():
    async with RawServer(waits, tls=serving()) as server:
        assert await failure(server.port, host="localhost", scheme="https") == "tls"


async def test_a_certificate_of_another_host_is_refused():
    async with RawServer(waits, tls=serving()) as server:
        options = {"scheme": "https", "tls": trusting(), "resolve": known_as("127.0.0.1")}

        assert await failure(server.port, host="other.test", **options) == "tls"


async def test_a_server_without_tls_is_no_tls_server():
    async def play(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with RawServer(play) as server:
        assert await failure(server.port, scheme="https", tls=trusting()) == "tls"


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_a_tls_handshake_that_hangs_is_ended_and_its_socket_closed(how):
    async with RawServer(waits) as server:
        if how == "timeout":
            detail = await failure(server.port, scheme="https", tls=trusting(), within=0.1)
            assert detail == "timeout"
        else:
            reaching = asyncio.ensure_future(reach(server.port, scheme="https", tls=trusting()))
            await until(lambda: server.peers)
            reaching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reaching

        await until(lambda: server.peers)
        await asyncio.wait_for(server.peers[0].over.wait(), WITHIN)


def test_the_default_trust_is_read_once_and_speaks_http_1():
    assert address.default_tls() is address.default_tls()
    assert address.default_tls().verify_mode is ssl.CERT_REQUIRED
