"""A gateway process in front of nodes that live in the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.fakes.process import GatewayProcess

Serve = Callable[..., Awaitable[GatewayProcess]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """`await serve(urls, extra=toml, ...)` starts one and waits until it is ready."""
    async with AsyncExitStack() as stack:

        async def start(
            nodes: Sequence[str], *, extra: str = "", **gateway: object
        ) -> GatewayProcess:
            process = GatewayProcess(tmp_path, nodes)
            stack.push_async_callback(process.stop)
            process.write(**gateway)
            with process.config.open("a") as file:
                file.write(extra)
            await process.start()
            return process

        yield start
