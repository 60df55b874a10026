"""A real server on loopback in front of a scripted gateway, on both event loops."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvloop

from llmgw.daemon.loop import FairLoop
from llmgw.web.access import AccessRecord
from llmgw.web.pages import metrics_pages, public_pages
from llmgw.web.server import WebServer
from llmgw.web.site import Site
from tests.fakes.gateway import FakeGateway
from tests.fakes.raw_client import RawClient, Reply


class Door:
    """A server with its address, its records and the clients that a test opened."""

    def __init__(self, gateway: FakeGateway, pages=None, **options) -> None:
        self.gateway = gateway
        self.records: list[AccessRecord] = []
        pages = public_pages(gateway) if pages is None else pages
        self.site = Site(gateway, pages, on_complete=self.records.append)
        self.server = WebServer(self.site, **options)
        self.clients: list[RawClient] = []
        self.address = ("", 0)

    async def open(self) -> None:
        sock = listening()
        self.address = sock.getsockname()
        await self.server.start([sock])

    async def client(self, **options) -> RawClient:
        client = await RawClient.connect(self.address, **options)
        self.clients.append(client)
        return client

    async def ask(self, data: bytes, **options) -> Reply:
        """On a connection of its own."""
        return await (await self.client()).ask(data, **options)

    async def close(self) -> None:
        for client in self.clients:
            client.close()
        await self.server.close()


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock


@contextlib.asynccontextmanager
async def opened(door: Door) -> AsyncIterator[Door]:
    await door.open()
    try:
        yield door
    finally:
        await door.close()


def pytest_asyncio_loop_factories(config, item):
    """Transports differ: what holds for one loop is no proof for the other."""
    return {"asyncio": FairLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def door(gateway) -> AsyncIterator[Door]:
    async with opened(Door(gateway)) as door:
        yield door


@pytest.fixture
async def metrics_door(gateway) -> AsyncIterator[Door]:
    async with opened(Door(gateway, metrics_pages(gateway))) as door:
        yield door
