"""A simulated node as a whole: its listener, its faults, its life.

async with SimNode(["m"], name="a") as node:
    await node.inject("model_not_found,times=1")
    ... node.url ...
    assert node.seen[0].outcome == "model_not_found"
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Self

from aiohttp import web

from llmgw.sim.faults import Fault, FaultKind, Faults, parse_fault
from llmgw.sim.server import build_app
from llmgw.sim.state import Seen, Settings, SimState

KEEP_ALIVE = 5.0  # as uvicorn, behind which vLLM stands
STOP_WITHIN = 0.2


class SimNode:
    """A real HTTP server on loopback that answers as a vLLM does, and fails when told to.

    `refuse` closes the listener of `url`; `control_url` answers the same routes and stays.
    """

    def __init__(
        self,
        models: Iterable[str] = ("sim",),
        *,
        name: str = "sim",
        host: str = "127.0.0.1",
        port: int = 0,
        ttft: float = 0.0,
        tps: float = 0.0,
        tokens: int = 20,
        max_model_len: int = 8192,
        websocket: bool = False,
        stores: bool = True,
        faults: Iterable[Fault | str] = (),
    ) -> None:
        settings = Settings(
            name, tuple(models), ttft, tps, tokens, max_model_len, websocket, stores
        )
        self.state = SimState(settings)
        self._host = host
        self._port = port
        self._first_faults = tuple(faults)
        self._runner = web.AppRunner(
            build_app(self.state, self),
            access_log=None,
            handler_cancellation=True,  # a client that leaves ends its stream
            keepalive_timeout=KEEP_ALIVE,
            shutdown_timeout=STOP_WITHIN,
        )
        self._listener: asyncio.Server | None = None
        self._control: asyncio.Server | None = None
        self._control_port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        return _url(self._host, self._port)

    @property
    def control_url(self) -> str:
        return _url("127.0.0.1", self._control_port)

    @property
    def name(self) -> str:
        return self.state.settings.name

    @property
    def faults(self) -> Faults:
        return self.state.faults

    @property
    def seen(self) -> tuple[Seen, ...]:
        """The inference requests that arrived, oldest first."""
        return tuple(self.state.seen)

    async def start(self) -> None:
        await self._runner.setup()
        self._control = await self._listen("127.0.0.1", 0)
        self._control_port = _port_of(self._control)
        self._listener = await self._listen(self._host, self._port)
        self._port = _port_of(self._listener)
        await self.inject(*self._first_faults)

    async def stop(self) -> None:
        for server in (self._listener, self._control):
            if server is not None:
                server.close()
        self._listener = None
        if self._runner.server is not None:
            self._drop_connections(spare=None)
        await self._runner.cleanup()

    async def inject(
        self, *faults: Fault | str, asking: asyncio.BaseTransport | None = None
    ) -> None:
        """Switch faults on, as values or as `parse_fault` reads them."""
        for one in faults:
            fault = parse_fault(one) if isinstance(one, str) else one
            self.faults.add(fault)
            if fault.kind is FaultKind.REFUSE:
                self._refuse(asking)

    async def clear(self) -> None:
        """Switch all faults off; a closed listener opens again on its old port."""
        self.faults.clear()
        if self._listener is None:
            self._listener = await self._listen(self._host, self._port)

    def _refuse(self, asking: asyncio.BaseTransport | None) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._drop_connections(spare=asking)

    def _drop_connections(self, spare: asyncio.BaseTransport | None) -> None:
        for connection in self._server.connections:
            if connection.transport is not None and connection.transport is not spare:
                connection.transport.abort()

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._server, host, port, backlog=1024)

    @property
    def _server(self) -> web.Server:
        if self._runner.server is None:
            raise RuntimeError("the node is not running")
        return self._runner.server


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])
