"""What the runtime is handed: upstreams, the client's side, stores. Real ones are put together
by the daemon; tests hand in fakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from llmgw.core.config import Upstream
from llmgw.core.errors import UpstreamError
from llmgw.core.http import ResponseHead as ResponseHead
from llmgw.core.http import Sink as Sink
from llmgw.core.http import UpstreamRequest as UpstreamRequest
from llmgw.core.types import Headers


class Exchange(Protocol):
    """One open call to one upstream, whose head has arrived.

    Pulled with `read` until `splice_to`, pushed from then on. Whoever opened it ends it: by
    reading to the end, or by `abort`. After a whole body the connection goes back to its pool
    by itself.
    """

    @property
    def head(self) -> ResponseHead: ...

    async def read(self) -> bytes:
        """The next body bytes, framing removed; b"" at the end. Raises `UpstreamError` (CUT,
        INVALID). May be cancelled, and called again, without loss."""

    def splice_to(self, sink: Sink) -> None:
        """Push what is buffered and all that follows into `sink`. Called once."""

    def pause(self) -> None:
        """Stop reading from the upstream's socket (backpressure)."""

    def resume(self) -> None: ...

    def fail(self, fault: UpstreamError) -> None:
        """End the call from outside: whoever waits on it gets `fault`; the connection closes."""

    def abort(self) -> None:
        """Close the upstream connection at once, unless the body has ended. Idempotent."""


class Upstreams(Protocol):
    """The inference path out: one keep-alive pool per base URL."""

    async def open(
        self,
        upstream: Upstream,
        request: UpstreamRequest,
        *,
        connect_timeout: float,
        header_timeout: float | None,
        on_sent: Callable[[Callable[[UpstreamError], None]], None] | None = None,
    ) -> Exchange:
        """Send the request and wait for the response head; 1xx answers are skipped.

        A reused connection that closes before any response byte is repeated once on a new one.
        `on_sent` is handed a function that fails the pending call from outside (a node that
        health has found dead). Cancelling closes the connection.
        Raises `UpstreamError`: CONNECT, LOST, TIMEOUT, INVALID, or what it was failed with.
        """


class Downstream(Protocol):
    """The client's side of one request: bytes out, framing and disconnects included.

    Before `commit` nothing has been sent. No method raises for a client that has left: the
    handler is cancelled instead.
    """

    @property
    def committed(self) -> bool: ...

    @property
    def bytes_sent(self) -> int:
        """Body bytes handed to the transport so far."""

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer in one write; sets `content-length`, `date` and connection headers."""

    def commit(self, status: int, headers: Headers) -> None:
        """Send the status line and the head of a body of unknown length (chunked on HTTP/1.1,
        unframed and ended by close on HTTP/1.0)."""

    def write(self, data: bytes) -> None:
        """Body bytes; framing kept whole, so that another write or the end can always follow."""

    def finish(self, *, close: bool = False) -> None:
        """End the body cleanly; with `close` the connection ends with it."""

    def cut(self) -> None:
        """End the body without its last chunk and close the connection."""

    @property
    def paused(self) -> bool:
        """More than the allowed buffer (256 KiB) waits for a slow client."""

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Whom to tell when the client's buffer fills and empties; the last caller wins."""

    async def drained(self) -> None:
        """Wait until not `paused`."""
