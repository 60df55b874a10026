"""Two gateway processes on one database, and what their clients and the database see of them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp

from tests.fakes.process import GatewayProcess, chat

PATIENCE = 30.0  # seconds: no answer of a test takes longer
STEP = 0.02
SETTINGS = """
[database]
url = "sqlite:///{database}"
[circuits]
failure_threshold = 1
open_for = "{open_for}"
"""


class Pair:
    """`one` and `two`; each has folders, sockets and a process of its own."""

    def __init__(self, folder: Path, nodes: Sequence[str], *, open_for: str) -> None:
        self.database = folder / "shared.db"
        self.one, self.two = (_gateway(folder / name, nodes) for name in ("one", "two"))
        for gateway in (self.one, self.two):
            gateway.write()
            text = gateway.config.read_text()
            more = SETTINGS.format(database=self.database, open_for=open_for)
            gateway.config.write_text(text + more)

    async def start(self) -> None:
        await asyncio.gather(self.one.start(), self.two.start())
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(PATIENCE)
        )

    async def stop(self) -> None:
        await self.session.close()
        await asyncio.gather(self.one.stop(), self.two.stop())

    async def chat(self, gateway: GatewayProcess, **fields: object) -> int:
        url = f"{gateway.url}/v1/chat/completions"
        async with self.session.post(url, json={**chat(), **fields}) as answer:
            await answer.read()
            return answer.status

    async def ask(
        self, gateway: GatewayProcess, method: str, path: str, body: object = None
    ) -> tuple[int, dict[str, object]]:
        url = f"{gateway.url}{path}"
        async with self.session.request(method, url, json=body) as answer:
            return answer.status, await answer.json()

    async def until_chat(self, gateway: GatewayProcess, status: int, within: float) -> None:
        """Ask again until it is answered so."""
        for _ in range(round(within / STEP)):
            if await self.chat(gateway) == status:
                return
            await asyncio.sleep(STEP)
        raise AssertionError(f"no {status} within {within} s")

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            found = database.execute(query).fetchall()
        database.close()
        return found


async def eventually(condition: Callable[[], bool], within: float) -> None:
    for _ in range(round(within / STEP)):
        if condition():
            return
        await asyncio.sleep(STEP)
    raise AssertionError(f"it did not come true within {within} s")


def _gateway(folder: Path, nodes: Sequence[str]) -> GatewayProcess:
    folder.mkdir()
    return GatewayProcess(folder, nodes)


def data_of(stream: bytes) -> list[dict[str, object]]:
    """The JSON of an event stream's events."""
    lines = stream.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
