"""Marked text goes through every route and fault, and is then looked for wherever it must not be.

Every secret of a client, a key, a credential, or an upstream carries the mark.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from hashlib import sha256

import aiohttp
import pytest
from aiohttp import web

from llmgw.core.routes import ID_ROUTES, ROUTES, ModelIn, Route
from tests.fakes.patience import until
from tests.fakes.process import GatewayProcess

MARK = "canary"
MODEL = "m1"
TOKEN = f"sk-{MARK}-of-a-client"
CREDENTIAL = f"sk-{MARK}-of-an-account"
FAULT = "x-fault"  # tells the upstream what to do wrong; no canary, for it is the test's own
FAULTS = ("none", "400", "401", "404", "429", "500", "503", "in_band", "junk", "reset", "cut")
EXPLAINED = 400  # the one status whose message clients are told

CONFIG = """
[auth]
[[auth.keys]]
name = "client"
digest = "sha256:{digest}"
[admin]
[circuits]
failure_threshold = 100000
{accounts}
"""
ACCOUNT = """
[[accounts]]
name = "{name}"
url = "{url}"
models = ["{model}"]
api_key_env = "ACCOUNT_KEY"
"""


class Upstream:
    """An account's endpoint: says marked things, and fails as the request's header wishes."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        fault = request.headers.get(FAULT, "none")
        match fault:
            case "none":
                return await self._serve(request)
            case "in_band":
                return web.json_response(self._error(code=None))
            case "junk":
                return web.Response(text=f"{MARK} junk", content_type="application/json")
            case "reset":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "cut":
                response = web.StreamResponse(headers={"content-length": "1000"})
                response.content_type = "application/json"
                await response.prepare(request)
                await response.write(f'{{"text": "{MARK}'.encode())
                assert request.transport is not None
                request.transport.close()
                return response
            case status:
                headers = {"x-odd": f"{MARK}-header", "retry-after": "0"}
                error = self._error(code="odd_code")
                return web.json_response(error, status=int(status), headers=headers)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if "text/event-stream" not in request.headers.get("accept", ""):
            return web.json_response({"id": f"id_{MARK}", "output": f"{MARK} output"})
        response = web.StreamResponse()
        response.content_type = "text/event-stream"
        await response.prepare(request)
        event = {"type": "error", "choices": [{"delta": {"content": MARK}}], **self._error(None)}
        await response.write(f"data: {json.dumps(event)}\n\n".encode())
        return response

    def _error(self, code: str | None) -> dict[str, object]:
        return {"error": {"message": f"{MARK} said", "type": "odd_type", "code": code}}


@pytest.fixture
async def upstream():
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", Upstream().handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def gateway(tmp_path, upstream):
    gateway = GatewayProcess(tmp_path, [])
    gateway.write()
    accounts = "".join(
        ACCOUNT.format(name=name, url=upstream, model=MODEL) for name in ("one", "two")
    )
    digest = sha256(TOKEN.encode()).hexdigest()
    pools = '[[pools]]\nname = "cluster"\n' + "".join(
        f'[[pools.assignments]]\nupstream = "{name}"\n' for name in ("one", "two")
    )
    text = CONFIG.format(digest=digest, accounts=accounts) + pools
    gateway.config.write_text(gateway.config.read_text() + text)
    await gateway.start(environment={"ACCOUNT_KEY": CREDENTIAL})
    yield gateway
    await gateway.stop()


def body_of(route: Route, *, stream: bool) -> dict[str, object]:
    """Keywords of the request's body: JSON, a form with a file, or nothing."""
    if route.model_in is ModelIn.BODY:
        return {"json": marked_json(stream=stream)}
    if route.method != "POST":
        return {}
    form = aiohttp.FormData()
    if route.model_in is ModelIn.FORM:
        form.add_field("model", MODEL)
    form.add_field("prompt", f"{MARK} prompt")
    form.add_field("file", f"{MARK} content".encode(), filename=f"{MARK}.txt")
    return {"data": form}


def marked_json(*, stream: bool) -> dict[str, object]:
    return {
        "model": MODEL,
        "stream": stream,
        "user": f"{MARK}-user",
        "prompt_cache_key": f"{MARK}-cache",
        "previous_response_id": f"resp_{MARK}",
        "messages": [{"role": "user", "content": f"{MARK} prompt"}],
        "input": [{"type": "input_file", "file_id": f"file-{MARK}", "filename": f"{MARK}.txt"}],
    }


def marked_headers(fault: str, *, stream: bool) -> dict[str, str]:
    return {
        "authorization": f"Bearer {TOKEN}",
        "x-session-id": f"{MARK}-session",
        "x-anything": f"{MARK}-header",
        "user-agent": f"{MARK}-agent",
        "cookie": f"a={MARK}",
        "accept": "text/event-stream" if stream else "application/json",
        FAULT: fault,
    }


def requests() -> Iterator[tuple[Route, str, bool]]:
    for fault in FAULTS:
        for route in (*ROUTES, *ID_ROUTES):
            yield route, fault, False
            if route.streams and route.model_in is ModelIn.BODY:
                yield route, fault, True


class Client:
    """Asks, and keeps what it was told that it must not have been told."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session
        self.told: list[str] = []
        self.statuses: set[int] = set()

    async def ask(self, route: Route, fault: str, stream: bool) -> None:
        id = f"id_{MARK}" if fault != "401" else f"unknown_{MARK}"
        path = route.path.replace("{id}", id)
        headers = marked_headers(fault, stream=stream)
        try:
            async with self.session.request(
                route.method,
                f"{self.url}{path}?{MARK}=1",
                headers=headers,
                **body_of(route, stream=stream),
            ) as answer:
                text = await answer.text()
        except aiohttp.ClientError:
            return
        self.statuses.add(answer.status)
        if answer.status >= 400 and answer.status != EXPLAINED:
            self._look(f"{route.path} {fault}", text, *map(str, answer.headers.items()))

    async def ask_badly(self) -> None:
        """What is refused before any upstream is asked."""
        marked = {"authorization": f"Bearer wrong-{MARK}"}
        good = {"authorization": f"Bearer {TOKEN}"}
        for method, path, headers, data in (
            ("POST", "/v1/chat/completions", marked, "{}"),
            ("POST", "/v1/chat/completions", good, f'{{"{MARK}'),
            ("POST", "/v1/chat/completions", good, json.dumps({"model": [MARK]})),
            ("POST", f"/v1/{MARK}", good, "{}"),
            ("GET", "/v1/chat/completions", good, None),
            ("GET", f"/v1/models/{MARK}", good, None),
            ("GET", "/v1/files", good, None),
            ("POST", "/v1/messages", {**good, "content-encoding": MARK}, "{}"),
        ):
            url = f"{self.url}{path}"
            async with self.session.request(method, url, headers=headers, data=data) as answer:
                assert answer.status >= 400
                self._look(f"{method} {path}", await answer.text(), str(answer.headers))

    def _look(self, where: str, *texts: str) -> None:
        self.told += [where for text in texts if MARK in text.lower()]


def marked_files(folder, pattern: str, known: str) -> list[str]:
    """Those with the mark, of files that hold a `known` word: else they are not what is meant."""
    texts = {path: path.read_bytes().lower() for path in folder.rglob(pattern)}
    assert known.encode() in b"".join(texts.values()), pattern
    return [path.name for path, text in texts.items() if MARK.encode() in text]


async def test_marked_text_is_found_nowhere(gateway, tmp_path, capfd):
    connector = aiohttp.TCPConnector(limit=16)
    async with aiohttp.ClientSession(connector=connector) as session:
        client = Client(gateway.url, session)
        await asyncio.gather(*(client.ask(*one) for one in requests()))
        await client.ask_badly()
        assert {200, 400, 404, 429, 502, 503} <= client.statuses
        lock = await outage(gateway, tmp_path, client)

    assert client.told == []
    assert marked_files(tmp_path, "*.rows", MODEL) == [], "the spool"
    lock.close()
    await until_database(gateway, "ok")
    assert marked_files(tmp_path, "llmgw.db*", MODEL) == [], "the database"
    assert marked_files(tmp_path, "log", MODEL) == [], "the log"
    assert marked_files(tmp_path / "run", "*.json", MODEL) == [], "the runtime folder"
    assert MARK not in " ".join(gateway.manager.heard).lower()
    for path, port in (("/metrics", gateway.metrics_port), ("/health", gateway.port)):
        assert MARK not in (await gateway.get(path, port=port))[1].lower()
    for words in (("explain", "--model", MODEL, "--key", TOKEN), ("status", "--json")):
        _, out, err = await gateway.run(*words)
        assert out
        assert MARK not in (out + err).lower(), words
    shown = capfd.readouterr()
    assert MARK not in (shown.out + shown.err).lower()


async def outage(gateway: GatewayProcess, folder, client: Client) -> sqlite3.Connection:
    """Rows and pins wait on disk, until the connection that is returned is closed."""
    lock = sqlite3.connect(folder / "state" / "llmgw.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    for route in ROUTES[:4]:
        await client.ask(route, "none", False)
    await until_database(gateway, "spooling")
    return lock


async def until_database(gateway: GatewayProcess, state: str) -> None:
    async def is_reached() -> bool:
        return (await gateway.health())["database"] == state

    await until(is_reached)
