"""Two gateway processes on one database, and what their clients and the database see of them."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from tests.fakes.patience import WITHIN, until
from tests.fakes.process import GatewayProcess, chat

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
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(WITHIN)
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

    async def until_chat(self, gateway: GatewayProcess, status: int) -> None:
        """Ask again until it is answered so."""

        async def is_answered_so() -> bool:
            return await self.chat(gateway) == status

        await until(is_answered_so)

    async def until_known(self, gateway: GatewayProcess, circuit: str) -> None:
        """Until the gateway has seen that some circuit is in this state."""
        line = re.compile(rf'^gateway_circuits{{.*state="{circuit}"}} 1.0$', re.MULTILINE)

        async def is_known() -> bool:
            _, page = await gateway.get("/metrics", port=gateway.metrics_port)
            return line.search(page) is not None

        await until(is_known)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            found = database.execute(query).fetchall()
        database.close()
        return found


def _gateway(folder: Path, nodes: Sequence[str]) -> GatewayProcess:
    folder.mkdir()
    return GatewayProcess(folder, nodes)


def data_of(stream: bytes) -> list[dict[str, object]]:
    """The JSON of an event stream's events."""
    lines = stream.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
