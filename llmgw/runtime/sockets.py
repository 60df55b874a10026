"""Websockets as the runtime is handed them: the client's, and those to upstreams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from llmgw.core.config import Upstream
from llmgw.core.frames import Closed, Message
from llmgw.core.http import Rejection
from llmgw.core.types import Headers


class Socket(Protocol):
    """One end of a websocket. Pings are answered whatever its holder does; nothing raises for a
    peer that has left: `receive` tells."""

    async def send(self, message: Message) -> None:
        """Returns once the peer has room for more."""

    async def receive(self) -> Message | Closed:
        """The next message; after the end nothing but the end."""

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Say so; `receive` ends at once."""

    def beat(self, now: float) -> None:
        """Called now and then: pings a silent peer, and ends with one that is gone."""

    def abort(self) -> None: ...


class ClientSocket(Socket, Protocol):
    """The client's. Its handler is cancelled when it leaves while nobody receives."""

    def write(self, data: bytes) -> None:
        """A text message, at once and whatever the buffer holds."""

    @property
    def paused(self) -> bool:
        """More than the allowed buffer waits for a slow client."""

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None: ...

    async def drained(self) -> None: ...


class UpstreamSocket(Socket, Protocol):
    @property
    def ended(self) -> Closed | None: ...

    @property
    def protocol(self) -> str | None:
        """The subprotocol that the upstream chose."""

    async def drop(self) -> None:
        """Forget what came while nobody received; never waits."""


class Sockets(Protocol):
    async def open(
        self,
        upstream: Upstream,
        *,
        target: str,
        headers: Headers,
        protocols: tuple[str, ...] = (),
        max_bytes: int,
        connect_timeout: float,
        handshake_timeout: float,
    ) -> UpstreamSocket | Rejection:
        """Raises `UpstreamError`."""
