"""A gateway as a process of its own, with a service manager that listens to what it says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from llmgw.runtime.tasks import Supervisor
from tests.fakes.patience import WITHIN

COMMAND = (sys.executable, "-m", "llmgw")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


class Manager:
    """The socket that NOTIFY_SOCKET names, and what was said on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[str] = []
        self._inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inlet.bind(str(path))
        self._inlet.setblocking(False)

    async def hear(self, line: str) -> None:
        """Wait until this line is said, from where the last wait ended."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(WITHIN):
            said: list[str] = []
            while line not in said:
                said = (await loop.sock_recv(self._inlet, 4096)).decode().split("\n")
                self.heard += said

    def close(self) -> None:
        self._inlet.close()


class GatewayProcess:
    """`llmgw serve` in a folder of its own."""

    def __init__(self, folder: Path, nodes: Sequence[str]) -> None:
        self.folder = folder
        self.config = folder / "llmgw.toml"
        self.port = free_port()
        self.metrics_port = free_port()
        self.listen: list[str] | None = None  # None: `port` on loopback
        self.nodes = list(nodes)
        self.manager = Manager(folder / "notify")
        self.environment = {
            **os.environ,
            "STATE_DIRECTORY": str(folder / "state"),
            "RUNTIME_DIRECTORY": str(folder / "run"),
            "NOTIFY_SOCKET": str(self.manager.path),
        }
        self._log = folder / "log"
        self.process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, **gateway: object) -> None:
        """The configuration file, anew."""
        listen = self.listen or f"127.0.0.1:{self.port}"
        lines = [f"[gateway]\nlisten = {json.dumps(listen)}"]
        lines.append(f'metrics_listen = "127.0.0.1:{self.metrics_port}"')
        lines += [f"{key} = {json.dumps(value)}" for key, value in gateway.items()]
        for at, url in enumerate(self.nodes):
            lines.append(f'[[nodes]]\nname = "n{at}"\nurl = "{url}"')
        self.config.write_text("\n".join(lines) + "\n")

    async def start(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start and wait for READY=1."""
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *prefix,
                *COMMAND,
                "serve",
                "-c",
                str(self.config),
                env={**self.environment, **(environment or {})},
                stdout=log,
                stderr=log,
                pass_fds=pass_fds,
            )
        supervisor = Supervisor()
        ready = supervisor.spawn("ready", self.manager.hear("READY=1"))
        ended = supervisor.spawn("ended", self.process.wait())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        await supervisor.stop()
        assert not ready.cancelled(), f"it ended before it was ready:\n{self._log.read_text()}"
        ready.result()

    async def run(self, *words: str) -> tuple[int, str, str]:
        """Another command of the program, in the same surroundings."""
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *words,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(WITHIN):
            return await self.process.wait()

    async def stop(self) -> None:
        """The process that was started here, and a successor that it named, are ended."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        pid = self.pid()
        if pid is not None and self.process is not None and pid != self.process.pid:
            os.kill(pid, signal.SIGKILL)
        self.manager.close()

    def pid(self) -> int | None:
        try:
            return int((self.folder / "run" / "llmgw.pid").read_text())
        except (OSError, ValueError):
            return None

    def messages(self) -> list[str]:
        return [line["message"] for line in self.log()]

    def log(self) -> list[dict[str, object]]:
        found = self._log.read_text().splitlines()
        return [json.loads(line) for line in found if line.startswith("{")]

    async def get(self, path: str, *, port: int | None = None) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port or self.port}{path}") as answer,
        ):
            return answer.status, await answer.text()

    async def health(self) -> dict[str, object]:
        return dict(json.loads((await self.get("/health"))[1]))


def chat(*, stream: bool = False, tokens: int = 3) -> dict[str, object]:
    messages = [{"role": "user", "content": "hello"}]
    return {"model": "sim", "messages": messages, "stream": stream, "max_tokens": tokens}
