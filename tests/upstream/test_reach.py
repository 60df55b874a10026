"""Connections for small questions: by address, by name, over TLS, and why there is none."""

import asyncio
import socket
import ssl

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.names import Names
from llmgw.upstream.reach import reach
from tests.fakes.descriptors import no_descriptors
from tests.fakes.patience import WITHIN
from tests.fakes.rawserver import CERTIFICATE, Peer, RawServer


class Seen(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport):
        self.transport = transport


async def waits(peer: Peer) -> None:
    await peer.left()


@pytest.fixture
async def names():
    made = Names()
    yield made
    made.close()


async def fault(url: BaseUrl, names: Names, within: float = WITHIN) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await reach(url, Seen, names, within=within)
    assert raised.value.__cause__ is None
    return raised.value


@pytest.mark.parametrize(
    ("listens", "host"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "localhost")],
)
async def test_a_host_is_connected_to(names, listens, host):
    async with RawServer(waits, host=listens) as server:
        seen = await reach(BaseUrl("http", host, server.port), Seen, names, within=WITHIN)

        assert seen.transport.get_extra_info("peername")[0] == listens
        seen.transport.abort()


async def test_tls_is_spoken_where_the_scheme_says_so(names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    async with RawServer(waits, tls=context) as server:
        url = BaseUrl("https", "127.0.0.1", server.port)
        seen = await reach(url, Seen, names, within=WITHIN, tls=trust)

        assert seen.transport.get_extra_info("ssl_object") is not None
        seen.transport.abort()
        assert (await fault(url, names)).detail == "no connection: tls"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refusal(names, host):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = BaseUrl("http", host, free.getsockname()[1])

    found = await fault(url, names)

    assert (found.kind, found.detail) == (FaultKind.CONNECT, "no connection: refused")


async def test_no_answer_to_a_handshake(names):
    """A full backlog drops it, as a machine without power does."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())

        url = BaseUrl("http", "127.0.0.1", full.getsockname()[1])
        found = await fault(url, names, within=0.1)

    assert (found.kind, found.detail) == (FaultKind.CONNECT, "no connection: timeout")


async def test_an_address_that_leads_nowhere(names):
    found = await fault(BaseUrl("http", "fe80::1%none", 80), names)

    assert found.kind is FaultKind.CONNECT


async def test_a_name_that_is_none(names):
    found = await fault(BaseUrl("http", "a" * 70 + ".invalid", 80), names)

    assert (found.kind, found.detail) == (FaultKind.CONNECT, "no connection: name not resolved")


async def test_a_process_without_descriptors_does_not_blame_the_host(names):
    async with RawServer(waits) as server:
        url = BaseUrl("http", "127.0.0.1", server.port)
        with no_descriptors():
            found = await fault(url, names)

    assert found.kind is FaultKind.EXHAUSTED
