"""One gateway on real sockets, with the express door or without: what is to be the same in both.

async def play(ground): ...          # a client's side; what it returns is compared as well
assert await by_express(play, a=[...]) == await generally(play, a=[...])
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Self
from unittest import mock

from prometheus_client import REGISTRY

from llmgw.core.config import Config, KeyConfig
from llmgw.core.discovery import Listed
from llmgw.core.http import UpstreamRequest
from llmgw.core.policy import KeyRing
from llmgw.core.types import CLUSTER
from llmgw.runtime.express import Express
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.registry import Registry
from llmgw.runtime.tasks import Supervisor
from llmgw.upstream.pool import Pools
from llmgw.web.access import AccessRecord
from llmgw.web.express import ExpressDoor, ExpressRide, Gathering
from llmgw.web.pages import public_pages
from llmgw.web.server import WebServer
from llmgw.web.site import Site
from tests.builders import config, node
from tests.fakes.live import FakeWatch
from tests.fakes.patience import until
from tests.fakes.raw_client import RawClient, Reply, request
from tests.fakes.rawserver import Peer, RawServer, json_answer
from tests.fakes.stores import FakeDatabase

TOKEN = "gw-two-ways"
AUTHORIZATION = ("authorization", f"Bearer {TOKEN}")
WARM = "POST /warm"

Answer = bytes | Callable[[Peer], Awaitable[None]]
"""What an upstream sends for a request, or what it does with its connection."""


def chat(
    body: bytes = b'{"model":"m1","messages":[]}',
    *,
    path: str = "/v1/chat/completions",
    headers: tuple[tuple[str, str], ...] = (),
    token: tuple[str, str] = AUTHORIZATION,
) -> bytes:
    return request("POST", path, body=body, headers=(token, *headers))


def streaming(**options: Any) -> bytes:
    return chat(b'{"model":"m1","stream":true,"messages":[]}', **options)


def keys(**options: Any) -> KeyRing:
    digest = sha256(TOKEN.encode()).hexdigest()
    return KeyRing.from_keys([KeyConfig("tester", digest, pool=CLUSTER, **options)])


class Node:
    """Answers its requests with one after the other of a script."""

    def __init__(self, name: str, script: list[Answer]) -> None:
        self.name = name
        self.script = list(script)
        self.server = RawServer(self._play)
        self.peers: list[Peer] = []

    @property
    def asked(self) -> list[tuple[str, bytes]]:
        """Request lines and bodies, without those that only opened a connection."""
        return [
            (one.line, one.body) for one in self.server.requests if not one.line.startswith(WARM)
        ]

    async def _play(self, peer: Peer) -> None:
        self.peers.append(peer)
        while True:
            received = await peer.request()
            if received.line.startswith(WARM):
                await peer.send(json_answer())
                continue
            answer = self.script.pop(0)
            if isinstance(answer, bytes):
                await peer.send(answer)
            else:
                await answer(peer)


@dataclass(frozen=True)
class Seen:
    """What came of a scenario, without ids, times and ports."""

    told: Any  # what the scenario returned
    rows: list[tuple[Any, ...]]
    attempts: list[list[tuple[Any, ...]]]
    asked: dict[str, list[tuple[str, bytes]]]
    records: list[tuple[Any, ...]]
    circuits: dict[Any, Any]
    demotions: set[Any]
    metrics: dict[str, float]


@dataclass
class Ground:
    """Entered, it serves."""

    express: bool
    nodes: dict[str, Node]
    config: Config
    keyring: KeyRing = field(default_factory=keys)
    options: dict[str, Any] = field(default_factory=dict)
    warm: int = 1  # idle connections to each node
    records: list[AccessRecord] = field(default_factory=list)
    rides: int = 0
    gathered: int = 0
    clients: list[RawClient] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        self._stack.enter_context(mock.patch("llmgw.runtime.splice.LINGER", 0.02))
        for one in self.nodes.values():
            await self._stack.enter_async_context(one.server)
        urls = {name: one.server.port for name, one in self.nodes.items()}
        upstreams = tuple(node(name, port) for name, port in urls.items())
        # the first request begins with the second
        built = config(*upstreams[-1:], *upstreams[:-1], models=("m1",))
        self.config = replace(self.config, nodes=built.nodes, pools=built.pools)
        self.config = replace(self.config, models=built.models)
        self.database = FakeDatabase()
        self.pools = Pools()
        self.watch = FakeWatch()
        registry = Registry(self.config)
        self.gateway = Gateway(
            self.config,
            self.keyring,
            registry=registry,
            upstreams=self.pools,
            watch=self.watch,
            stores=self.database.stores,
            instance="abc123",
        )
        self.offer("m1")
        self.gateway.wheel.period = 0.01
        self._supervisor = Supervisor()
        self._supervisor.loop("wheel", self.gateway.wheel.run)
        site = Site(self.gateway, public_pages(self.gateway), on_complete=self.records.append)
        if self.express:
            door = ExpressDoor(self.gateway, Express(self.gateway), tell=site.tell)
            site.take = self._counted(door)
        self.server = WebServer(site, **self.options)
        self._sock = socket.create_server(("127.0.0.1", 0))
        self._sock.setblocking(False)
        self.address = self._sock.getsockname()
        await self.server.start([self._sock])
        await self.warm_up()
        self._before = metrics()
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()
        await self.server.close()
        self.pools.close()
        await self._supervisor.stop()
        await self._stack.aclose()

    def offer(self, *models: str) -> None:
        """All nodes list these."""
        for one in self.gateway.config.nodes:
            self.gateway.registry.discovery_event(one, Listed(models, 0.0))

    async def warm_up(self) -> None:
        for one in self.gateway.config.nodes:
            exchanges = [
                await self.pools.open(
                    one,
                    UpstreamRequest("POST", "/warm", (), b"{}"),
                    connect_timeout=5.0,
                    header_timeout=None,
                    fresh=True,
                )
                for _ in range(self.warm)
            ]
            for exchange in exchanges:
                while await exchange.read():
                    pass

    async def client(self) -> RawClient:
        client = await RawClient.connect(self.address)
        self.clients.append(client)
        # the connection's task waits from its first turn on
        await until(lambda: any(one.is_idle for one in self.server._made.live))
        return client

    async def ask(self, data: bytes) -> Reply:
        """On a connection of its own."""
        return await (await self.client()).ask(data)

    async def settled(self, count: int) -> None:
        """So many requests are through, and told of."""
        await until(lambda: len(self.database.requests.recorded) >= count)
        await until(lambda: len(self.records) >= count)

    @property
    def rows(self) -> list[Any]:
        return [settlement.request for settlement, _ in self.database.requests.recorded]

    @property
    def running(self) -> dict[str, float]:
        """What counts requests that run: all of it is 0 in the end."""
        registry = self.gateway.registry
        ours = {one.name: registry.in_flight(one) for one in self.gateway.config.nodes}
        watched = {
            f"{one.name} watched": len(entry.watchers)
            for one in self.gateway.config.nodes
            if (entry := registry.entry(one)) is not None
        }
        now = metrics()
        gauges = {
            name: now[name] - self._before.get(name, 0.0)
            for name in now
            if "in_flight" in name or "open_streams" in name
        }
        kept = {"wheel": len(self.gateway.wheel), "young": len(self.gateway.settler._young)}
        return {k: v for k, v in (ours | watched | gauges | kept).items() if v}

    def seen(self, told: Any) -> Seen:
        recorded = self.database.requests.recorded
        ids = {one.request.request_id for one, _ in recorded}
        assert len(ids) == len(recorded), "one row for each"
        for settlement, _ in recorded:
            assert settlement.request.started <= settlement.request.ended
        now = metrics()
        return Seen(
            told,
            [
                (*one.request._replace(request_id="", started=0.0, ended=0.0), client)
                for one, client in recorded
            ],
            [
                [tuple(it._replace(request_id="", started=0.0, ended=0.0)) for it in one.attempts]
                for one, _ in recorded
            ],
            {name: one.asked for name, one in self.nodes.items()},
            sorted(
                tuple(one._replace(request_id="", seconds=0.0, overhead=0.0))
                for one in self.records
            ),
            dict(self.database.circuits.rows),
            set(self.database.circuits.demotions),
            {
                name: now[name] - self._before.get(name, 0.0)
                for name in now
                if now[name] != self._before.get(name, 0.0)
            },
        )

    def _counted(self, door: ExpressDoor) -> Any:
        def take(connection: Any, data: bytes) -> Any:
            taken = door.take(connection, data)
            self.rides += isinstance(taken, ExpressRide)
            self.gathered += isinstance(taken, Gathering)
            return taken

        return take


def ground(express: bool, *, a: list[Answer] = (), b: list[Answer] = (), **options: Any) -> Ground:
    nodes = {"a": Node("a", list(a)), "b": Node("b", list(b))}
    configured = options.pop("config", None) or Config()
    return Ground(express, nodes, configured, **options)


Play = Callable[[Ground], Awaitable[Any]]


async def by_express(play: Play, *, rides: int | None = 1, **options: Any) -> Seen:
    """`rides`: how many requests have to be taken so."""
    async with ground(True, **options) as one:
        seen = one.seen(await _through(play, one))
        if rides is not None:
            assert one.rides + one.gathered == rides, "it went the general way"
        return seen


async def generally(play: Play, **options: Any) -> Seen:
    async with ground(False, **options) as one:
        return one.seen(await _through(play, one))


async def both(play: Play, *, rides: int | None = 1, **options: Any) -> Seen:
    """They are the same, and this is what they are."""
    express = await by_express(play, rides=rides, **options)
    general = await generally(play, **options)
    for name in Seen.__dataclass_fields__:
        ours, theirs = getattr(express, name), getattr(general, name)
        assert ours == theirs, f"{name}: {ours} by express, {theirs} generally"
    return express


async def _through(play: Play, one: Ground) -> Any:
    told = await play(one)
    for client in one.clients:
        client.close()
    await until(lambda: not one.server.connections)
    await until(lambda: not one.running)
    await asyncio.sleep(0)
    return told


def plain(reply: Reply) -> tuple[Any, ...]:
    """A reply without its id and time, in the order of its lines."""
    own = ("date", "x-request-id", "request-id")
    assert reply.headers["x-request-id"].startswith("req_")
    lines = sorted((k, v) for k, v in reply.headers.items() if k not in own)
    return reply.status, tuple(lines), reply.body


def unsigned(raw: bytes) -> bytes:
    """The same of bytes as they came."""
    own = (b"date:", b"x-request-id:", b"request-id:")
    return b"\r\n".join(line for line in raw.split(b"\r\n") if not line.startswith(own))


def metrics() -> dict[str, float]:
    """What counts, without what measures time and without connections."""
    found: Counter[str] = Counter()
    for family in REGISTRY.collect():
        if not family.name.startswith("gateway"):
            continue
        for sample in family.samples:
            if sample.name.endswith(("_sum", "_bucket", "_created")):
                continue
            if "connections" in sample.name:
                continue
            found[f"{sample.name}{sorted(sample.labels.items())}"] = sample.value
    return dict(found)
