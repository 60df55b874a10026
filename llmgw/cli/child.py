"""A gateway as a child process: started on free ports, ready when it says so, stopped with us."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import aiohttp

READY_WITHIN: Final = 20.0
STOP_WITHIN: Final = 5.0
POLL: Final = 0.05
OF_THE_PARENT: Final = frozenset(  # what a service manager said to us, not to the child
    {
        "NOTIFY_SOCKET",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
        "LISTEN_FDS",
        "LISTEN_PID",
        "JOURNAL_STREAM",
    }
)


class ChildFailed(Exception):
    """The gateway did not get ready; the message says what its log said last."""


class GatewayProcess:
    """`python -m llmgw serve` for some nodes, with all its state in one folder."""

    def __init__(self, nodes: Sequence[str], folder: Path) -> None:
        port, metrics_port = _free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        self.metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
        self.log = folder / "gateway.log"
        self._folder = folder
        self._words = [sys.executable, "-m", "llmgw", "serve"]
        for node in nodes:
            self._words += ["--node", node]
        self._words += ["--listen", f"127.0.0.1:{port}"]
        self._words += ["--metrics-listen", f"127.0.0.1:{metrics_port}"]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Return when it is ready. Raises `ChildFailed`."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(self._folder),
                start_new_session=True,  # Ctrl-C is for us; the child is told in order
            )
        try:
            async with asyncio.timeout(READY_WITHIN), aiohttp.ClientSession() as session:
                await self._ready(session, self._process)
        except TimeoutError:
            raise ChildFailed(
                f"not ready within {READY_WITHIN:.0f} s: {self._last_line()}"
            ) from None

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not follow."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _ready(
        self, session: aiohttp.ClientSession, process: asyncio.subprocess.Process
    ) -> None:
        while not await _answers(session, f"{self.url}/readyz"):
            if process.returncode is not None:
                status = process.returncode
                raise ChildFailed(f"it ended with status {status}: {self._last_line()}")
            await asyncio.sleep(POLL)

    def _last_line(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "(its log is empty)"


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_PARENT}
    return {**kept, "STATE_DIRECTORY": str(folder), "RUNTIME_DIRECTORY": str(folder)}


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; held together, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports
