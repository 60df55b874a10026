"""Many requests with a restart in their middle: is every answer in the database, as it was?

`python -m tests.e2e.accounting 10000` runs it at full size.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from llmgw.sim.node import SimNode
from tests.fakes.process import GatewayProcess, chat

CONCURRENCY = 32
RETRY_AFTER = 0.05  # where the gateway is not there
FAILS = "status,status=502,times={times}"


@dataclass(slots=True)
class Outcome:
    """What the clients saw, by request id, and what the database has."""

    answered: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    without_attempts: int = 0
    retries: int = 0
    handed_on: int = 0
    wrong_ends: int = 0

    @property
    def lost(self) -> set[str]:
        return {id for id, status in self.answered.items() if self.rows.get(id) != status}


async def account(folder: Path, requests: int) -> Outcome:
    """Both nodes fail now and then, so that requests are handed on, and some fail in the end."""
    faulty = FAILS.format(times=requests // 20)
    async with (
        SimNode(["sim"], name="a", tokens=1) as a,
        SimNode(["sim"], name="b", tokens=1) as b,
    ):
        await a.inject(faulty)
        await b.inject(faulty)
        gateway = GatewayProcess(folder, [a.url, b.url])
        gateway.write(request_overload_threshold=1_000_000)
        text = gateway.config.read_text()
        gateway.config.write_text(f"{text}\n[circuits]\nfailure_threshold = 1000000\n")
        await gateway.start()
        try:
            outcome = await _ask(gateway, requests)
            gateway.signal(signal.SIGTERM)
            await gateway.ended()
        finally:
            await gateway.stop()
    _read(folder / "state" / "llmgw.db", outcome)
    return outcome


async def _ask(gateway: GatewayProcess, requests: int) -> Outcome:
    outcome, numbers = Outcome(), itertools.count()

    async def client(session: aiohttp.ClientSession) -> None:
        while (number := next(numbers)) < requests:
            await _until_answered(session, gateway, outcome, stream=number % 2 == 0)

    async def restart() -> None:
        while len(outcome.answered) < requests // 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        gateway.signal(signal.SIGTERM)
        await gateway.ended()
        await gateway.start()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(restart(), *(client(session) for _ in range(CONCURRENCY)))
    return outcome


async def _until_answered(
    session: aiohttp.ClientSession, gateway: GatewayProcess, outcome: Outcome, *, stream: bool
) -> None:
    url = f"{gateway.url}/v1/chat/completions"
    while True:
        try:
            async with session.post(url, json=chat(stream=stream, tokens=1)) as answer:
                await answer.read()
                outcome.answered[answer.headers["x-request-id"]] = answer.status
                return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(RETRY_AFTER)


def _read(path: Path, outcome: Outcome) -> None:
    database = sqlite3.connect(path)

    def number(query: str) -> int:
        return int(database.execute(query).fetchone()[0] or 0)

    outcome.rows = dict(database.execute("SELECT id, status FROM requests").fetchall())
    outcome.without_attempts = number(
        "SELECT count(*) FROM requests WHERE retry_count + 1 !="
        " (SELECT count(*) FROM attempts WHERE request_id = id)"
    )
    outcome.retries = number("SELECT sum(retry_count) FROM requests")
    outcome.handed_on = number("SELECT count(*) FROM attempts WHERE outcome = 'retryable_failed'")
    outcome.wrong_ends = number("SELECT count(*) FROM requests WHERE ended_at IS NULL")
    database.close()


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(account(Path(folder), requests))
    print(
        f"{requests} requests, a restart in the middle, {time.monotonic() - began:.0f} s: "
        f"{len(outcome.answered)} answered, {len(outcome.rows)} rows, {len(outcome.lost)} lost, "
        f"{outcome.retries} retries, {outcome.handed_on} attempts handed on, "
        f"{outcome.without_attempts} with missing attempts, {outcome.wrong_ends} left open"
    )


if __name__ == "__main__":
    main()
