"""A gateway with operators, simulated nodes behind it, and requests that leave a trace."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import aiohttp

from llmgw.core.admin_password import hash_password
from llmgw.sim.node import SimNode
from tests.fakes.process import GatewayProcess

PASSWORD = "correct horse battery staple"
TOKEN = "operator-token"
MODELS = ["qwen3-32b", "qwen3-32b-awq", "Llama-3.3-70B-Instruct"]
KEYS = {"cluster": "key-of-cluster", "night": "key-of-night"}


@dataclass(frozen=True)
class World:
    gateway: GatewayProcess
    nodes: Sequence[SimNode]

    @property
    def url(self) -> str:
        return self.gateway.url

    async def ask(
        self, model: str, *, stream: bool = False, tokens: int = 3, pool: str = "cluster"
    ) -> int:
        body = {
            "model": model,
            "stream": stream,
            "max_tokens": tokens,
            "messages": [{"role": "user", "content": "hello"}],
            "stream_options": {"include_usage": True},
        }
        headers = {"authorization": f"Bearer {KEYS[pool]}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}/v1/chat/completions", json=body) as answer,
        ):
            await answer.read()
            return answer.status

    async def busy(self) -> None:
        """Requests of several kinds: served, handed on, refused; one circuit opens."""
        await self.ask(MODELS[0], pool="night")
        for at in range(12):
            await self.ask(MODELS[at % 3], stream=at % 2 == 0, tokens=4 + at)
        await self.nodes[1].inject(f"model_not_found,model={MODELS[2]}")
        await self.nodes[0].inject(f"status,status=503,times=1,model={MODELS[1]}")
        for _ in range(4):
            await self.ask(MODELS[2], stream=True)
            await self.ask(MODELS[1])
        for one in self.nodes[:2]:
            await one.inject(f"status,status=500,times=1,model={MODELS[0]}")
        await self.ask(MODELS[0], stream=True, tokens=8)


@contextlib.asynccontextmanager
async def opened_world(folder: Path) -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(
                SimNode(MODELS if at < 2 else MODELS[:2], name=name, ttft=0.03, tps=200)
            )
            for at, name in enumerate(("gpu-1", "gpu-2", "night-1"))
        ]
        gateway = GatewayProcess(folder, [])
        stack.push_async_callback(gateway.stop)
        gateway.write()
        with gateway.config.open("a") as file:
            file.write(_configuration([node.url for node in nodes]))
        await gateway.start()
        yield World(gateway, nodes)


def _configuration(urls: Sequence[str]) -> str:
    password = hash_password(PASSWORD, b"0123456789abcdef")
    nodes = zip(("gpu-1", "gpu-2", "night-1"), urls, strict=True)
    lines = ['[cluster]\nname = "lab"\n[circuits]\nfailure_threshold = 1\nopen_for = "10m"']
    lines += [f'[[nodes]]\nname = "{name}"\nurl = "{url}"' for name, url in nodes]
    lines.append('[[nodes]]\nname = "gpu-3"\nurl = "http://127.0.0.1:9"')
    lines += [
        '[[pools]]\nname = "cluster"',
        *(f'[[pools.assignments]]\nupstream = "{one}"' for one in ("gpu-1", "gpu-2", "gpu-3")),
        '[[pools]]\nname = "night"\n[[pools.assignments]]\nupstream = "night-1"',
    ]
    lines += [
        f'[[auth.keys]]\nname = "{pool}-client"\npool = "{pool}"\ndigest = "{_digest(token)}"'
        for pool, token in KEYS.items()
    ]
    lines += [
        f'[[admin.users]]\nname = "ada"\npassword = "{password}"\n'
        f'token_digest = "{_digest(TOKEN)}"\npools = ["cluster"]',
        f'[[admin.users]]\nname = "grace"\npassword = "{password}"\npools = ["cluster", "night"]',
    ]
    return "\n".join(lines) + "\n"


def _digest(token: str) -> str:
    return f"sha256:{sha256(token.encode()).hexdigest()}"
