"""A whole gateway inside the test, upstreams that follow a script on websockets, and a client."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, Self

import aiohttp
from aiohttp import WSMsgType, web

from llmgw.core.config import Account, Config, KeyConfig, Node
from llmgw.core.policy import KeyRing
from llmgw.runtime.express import Express
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.registry import Registry
from llmgw.runtime.tasks import Supervisor
from llmgw.upstream.pool import Pools
from llmgw.upstream.websocket import Sockets
from llmgw.web.express import ExpressDoor
from llmgw.web.live import LiveDoor
from llmgw.web.pages import public_pages
from llmgw.web.server import WebServer
from llmgw.web.site import Site
from tests.builders import account, config
from tests.fakes.patience import WITHIN
from tests.fakes.stores import FakeDatabase

PATIENCE = 30.0  # seconds: no answer of a test takes longer
TOKEN = "gw-CANARY-token"

Json = dict[str, Any]
Play = Callable[["Provider", web.WebSocketResponse], Awaitable[None]]


# --- events of a response


def created(response_id: str = "resp_1") -> Json:
    return {"type": "response.created", "sequence_number": 0, "response": {"id": response_id}}


def delta(text: str) -> Json:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}


def message(text: str) -> Json:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def completed(response_id: str = "resp_1", text: str = "hi") -> Json:
    response = {
        "id": response_id,
        "status": "completed",
        "output": [message(text)],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    return {"type": "response.completed", "sequence_number": 9, "response": response}


def whole(response_id: str = "resp_1", text: str = "hi") -> list[Json]:
    return [created(response_id), delta(text), completed(response_id, text)]


def error(status: int | None = 400, **words: object) -> Json:
    stated = {} if status is None else {"status": status}
    return {"type": "error", **stated, "error": {"message": "RAW-CANARY", **words}}


MODEL_NOT_FOUND = error(400, type="invalid_request_error", code="model_not_found", param="model")


def create(text: str = "hello", **members: object) -> Json:
    return {"type": "response.create", "model": "m1", "input": text, **members}


# --- upstreams


def turns(*answers: list[Json]) -> Play:
    """Answer the frames of one connection, each with the next of these lists of events."""

    async def play(provider: Provider, ws: web.WebSocketResponse) -> None:
        for events in answers:
            await provider.heard(ws)
            for event in events:
                await ws.send_str(json.dumps(event))
        await provider.heard(ws)

    return play


class Provider:
    """Answers upgrades by the next of `plays` (the last repeats), and POSTs by the next of
    `streams` or `answers`."""

    def __init__(
        self,
        *plays: Play,
        refuses: int | None = None,
        refusal: Json | None = None,
        streams: list[list[Json]] | None = None,
        answer: tuple[int, Json] | None = None,
    ) -> None:
        self.plays = list(plays)
        self.refuses = refuses
        self.refusal = refusal
        self.streams = streams or []
        self.answer = answer
        self.port = 0
        self.upgrades: list[dict[str, str]] = []  # header lines of each handshake
        self.targets: list[str] = []
        self.frames: list[Any] = []
        self.posts: list[Json] = []
        self.left = asyncio.Event()  # a websocket has ended
        self.close_codes: list[int | None] = []

    async def heard(self, ws: web.WebSocketResponse) -> Any:
        """The next message, kept in `frames`; ends the play when the gateway has closed."""
        found = await ws.receive()
        if found.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            raise Over
        data = json.loads(found.data) if found.type is WSMsgType.TEXT else found.data
        self.frames.append(data)
        return data

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**27)
        app.router.add_get("/v1/responses", self._upgrade)
        app.router.add_get("/v1/realtime", self._upgrade)
        app.router.add_post("/v1/responses", self._post)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        sock = socket.create_server(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _upgrade(self, request: web.Request) -> web.StreamResponse:
        self.upgrades.append({name.lower(): value for name, value in request.headers.items()})
        self.targets.append(request.path_qs)
        if self.refuses is not None:
            if self.refusal is None:
                return web.Response(status=self.refuses)
            return web.json_response(self.refusal, status=self.refuses)
        ws = web.WebSocketResponse(max_msg_size=2**27, protocols=("realtime",), compress=False)
        await ws.prepare(request)
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        try:
            await play(self, ws)
        except (Over, ConnectionError):
            pass
        finally:
            self.close_codes.append(ws.close_code)
            self.left.set()
        return ws

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self.posts.append(await request.json())
        if self.answer is not None:
            return web.json_response(self.answer[1], status=self.answer[0])
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in self.streams.pop(0):
            text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            await response.write(text.encode())
        return response


class Over(Exception):
    """The gateway has closed its websocket."""


# --- the gateway


class FakeWatch:
    def __init__(self) -> None:
        self.failed: list[str] = []

    def connection_failed(self, upstream: Node | Account) -> None:
        self.failed.append(upstream.name)

    def answered(self, upstream: Node | Account, status: int) -> None:
        return

    async def model_is_gone(self, upstream: Node | Account, model: str) -> bool:
        return False


class Whole:
    """Gateway, server and everything between, with a database in memory."""

    def __init__(self, config: Config) -> None:
        self.database = FakeDatabase()
        self.config = config
        self.draining = False
        self.port = 0
        self._clients: list[Client] = []

    async def __aenter__(self) -> Self:
        self._supervisor = Supervisor()
        self._pools = Pools()
        self.sockets = Sockets()
        self.watch = FakeWatch()
        self.gateway = Gateway(
            self.config,
            keyring(),
            registry=Registry(self.config),
            upstreams=self._pools,
            watch=self.watch,
            stores=self.database.stores,
            instance="abc123",
        )
        self.gateway.wheel.period = 0.01
        self._supervisor.loop("wheel", self.gateway.wheel.run)
        self.live = LiveDoor(self.gateway, self.sockets, lambda: self.draining)
        pages = public_pages(self.gateway, self.live.pages, upgrades=self.live.upgrades)
        site = Site(self.gateway, pages)
        site.take = ExpressDoor(self.gateway, Express(self.gateway), tell=site.tell).take
        self.server = WebServer(site)
        sock = socket.create_server(("127.0.0.1", 0))
        sock.setblocking(False)
        self.port = sock.getsockname()[1]
        await self.server.start([sock])
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE))
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()
        await self.session.close()
        await self.server.close()
        self.sockets.close()
        self._pools.close()
        await self._supervisor.stop()

    async def connect(
        self, path: str = "/v1/responses", *, token: str | None = TOKEN, **options: Any
    ) -> Client:
        headers = {**({"authorization": f"Bearer {token}"} if token else {})}
        headers |= options.pop("headers", {})
        options.setdefault("max_msg_size", 2**27)
        socket = await self.session.ws_connect(
            f"http://127.0.0.1:{self.port}{path}", headers=headers, **options
        )
        client = Client(socket)
        self._clients.append(client)
        return client

    @property
    def attempts(self) -> list[list[tuple[str, str, str | None]]]:
        """Of each request in order: assignment, outcome and reason of its attempts."""
        return [
            [(one.assignment, str(one.outcome), one.reason) for one in settlement.attempts]
            for settlement, _ in self.database.requests.recorded
        ]

    @property
    def rows(self) -> list[Any]:
        return [settlement.request for settlement, _ in self.database.requests.recorded]


class Client:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def send(self, frame: Json | str) -> None:
        await self.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def receive(self) -> Json:
        async with asyncio.timeout(WITHIN):
            return json.loads(await self.socket.receive_str())

    async def turn(self, frame: Json) -> list[Json]:
        """Send a frame, and read up to the event that ends its answer."""
        await self.send(frame)
        events = [await self.receive()]
        while events[-1]["type"] not in ("response.completed", "response.failed", "error"):
            events.append(await self.receive())
        return events

    async def closed(self) -> int | None:
        """Wait for the close; its code."""
        async with asyncio.timeout(WITHIN):
            found = await self.socket.receive()
        assert found.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR), found.type
        return self.socket.close_code

    async def is_quiet(self, seconds: float = 0.05) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.socket.receive()
        except TimeoutError:
            return True
        return False

    async def close(self) -> None:
        await self.socket.close()


def keyring(*tokens: str, pool: str = "p", models: tuple[str, ...] = ("*",)) -> KeyRing:
    names = tokens or (TOKEN,)
    keys = (
        KeyConfig(f"k{at}", sha256(token.encode()).hexdigest(), pool=pool, models=models)
        for at, token in enumerate(names)
    )
    return KeyRing.from_keys(keys)


def configured(*providers: Provider, takes: bool | None = True, **sections: Any) -> Config:
    """Accounts a, b, ... of pool `p`, each with m1 in its configuration; `takes` websockets.
    The first request tries them in order."""
    accounts = [
        account(
            "abc"[at],
            one.port,
            models=("m1",),
            websocket=takes,
            credential=(("authorization", f"Bearer up-CANARY-{'abc'[at]}"),),
        )
        for at, one in enumerate(providers)
    ]
    accounts = accounts[-1:] + accounts[:-1]  # the first request begins with the second
    default = sections.pop("default", None)
    built = config(*accounts, **sections)
    return replace(built, models=replace(built.models, default=default))


@asynccontextmanager
async def gateway(*providers: Provider, **sections: Any) -> AsyncIterator[Whole]:
    async with AsyncExitStack() as stack:
        for one in providers:
            await stack.enter_async_context(one)
        yield await stack.enter_async_context(Whole(configured(*providers, **sections)))
