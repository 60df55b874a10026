"""What the runtime is handed: upstreams, the client's side, stores. Real ones are put together
by the daemon; tests hand in fakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from llmgw.core.circuit import Circuit, CircuitKey
from llmgw.core.config import CircuitsConfig, Upstream
from llmgw.core.errors import UpstreamError
from llmgw.core.http import Bypass as Bypass
from llmgw.core.http import ResponseHead as ResponseHead
from llmgw.core.http import Sink as Sink
from llmgw.core.http import UpstreamRequest as UpstreamRequest
from llmgw.core.pins import PinKind
from llmgw.core.settle import Changes, Scope, Settlement
from llmgw.core.types import AssignmentId, Body, Headers, PoolName, UpstreamName
from llmgw.store.circuits import View as View
from llmgw.store.circuits import Written as Written
from llmgw.store.errors import StoreError as StoreError
from llmgw.store.requests import ANYBODY as ANYBODY
from llmgw.store.requests import Client as Client


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

    def go_past(self, way: Bypass | None) -> None:
        """What comes from now on may go past the sink, as `way` says; None: it may not."""

    def pause(self) -> None:
        """Stop reading from the upstream's socket (backpressure)."""

    def resume(self) -> None: ...

    def fail(self, fault: UpstreamError) -> None:
        """End the call from outside: whoever waits on it gets `fault`; the connection closes."""

    def abort(self) -> None:
        """Close the upstream connection at once, unless the body has ended. Idempotent."""


class OpenExchange(Exchange, Protocol):
    """One whose head may still be on its way, looked at from callbacks.

    Who listens is told after each read of the socket, and looks: first at `fault`, then at
    `has_head`, then at what there is to `peek`.
    """

    fault: UpstreamError | None
    ended: bool
    stale: bool
    unread: int  # bytes

    @property
    def has_head(self) -> bool: ...

    def listen(self, listener: Callable[[], None] | None) -> None: ...

    def peek(self) -> bytes:
        """What has come and was not read; it stays."""

    def take(self) -> bytes:
        """The same, and it is read."""

    async def answered(
        self,
        *,
        header_timeout: float | None,
        on_sent: Callable[[Callable[[UpstreamError], None]], None] | None,
    ) -> Exchange:
        """Go on waiting for the head, as `Upstreams.open` does."""


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
        fresh: bool = False,
    ) -> Exchange:
        """Send the request and wait for the response head; 1xx answers are skipped. With `fresh`
        on a new connection.

        A reused connection that closes before any response byte is repeated once on a new one.
        `on_sent` is handed a function that fails the pending call from outside (a node that
        health has found dead). Cancelling closes the connection.
        Raises `UpstreamError`: CONNECT, LOST, TIMEOUT, INVALID, or what it was failed with.
        """

    def render(self, upstream: Upstream, request: UpstreamRequest) -> bytes:
        """The head of the request as it is sent. Raises `ValueError` for what can't be."""

    def pool(self, upstream: Upstream) -> IdlePool:
        """Its connections, up to the next reload."""


class IdlePool(Protocol):
    def begin(self, head: bytes, body: Body, *, within: float) -> OpenExchange | None:
        """POST at once, or as soon as a connection is there, which takes `within` seconds at the
        most; None: it takes a task."""


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

    def write(self, data: bytes, chunk: bytes | None = None) -> None:
        """Body bytes; framing kept whole, so that another write or the end can always follow.
        `chunk`: the same bytes as one chunk, where they came so."""

    def bypass(self, kept: bytearray, most: int) -> Bypass | None:
        """A way to the client past `write`, for chunks that do not end an event stream: their
        data come into `kept`, up to `most` bytes. None: there is none."""

    def cork(self) -> None:
        """What is sent from here on may wait for `uncork`, `finish` or `cut`, which follow at
        once, and go out in one write."""

    def uncork(self) -> None: ...

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


class LineDownstream(Downstream, Protocol):
    """One that takes ready header lines (`llmgw.core.lines`) as well."""

    def respond(self, status: int, headers: Headers | bytes, body: bytes) -> None: ...

    def commit(self, status: int, headers: Headers | bytes) -> None: ...


class CircuitStore(Protocol):
    """Circuits and demotions of all gateways. Every call but a look fails with `StoreError`
    while the database is away; a change is made whether anybody waits for it or not.
    """

    def apply(
        self, changes: Changes, *, now: float, config: CircuitsConfig
    ) -> asyncio.Future[Written]: ...

    async def lease(
        self, key: CircuitKey, owner: str, *, now: float, config: CircuitsConfig
    ) -> bool: ...

    async def changed_since(self, cursor: int, *, now: float) -> View | None:
        """None: nobody has changed anything."""

    def merge(
        self, local: Mapping[CircuitKey, Circuit], base: Mapping[CircuitKey, int]
    ) -> asyncio.Future[Written]:
        """Write what changed during an outage, where the row still has its `base` version."""


class RequestStore(Protocol):
    """Rows of requests and attempts; neither call waits or fails."""

    def record(self, settlement: Settlement, client: Client = ANYBODY) -> None:
        """The final row and its attempts."""

    def record_open(self, scope: Scope, *, started: float, client: Client = ANYBODY) -> None:
        """The request still runs: another gateway closes the row if this one dies."""


class PinStore(Protocol):
    def put(
        self, pool: PoolName, kind: PinKind, id: str, assignment: AssignmentId, *, now: float
    ) -> asyncio.Future[None]:
        """Done when committed, or when on disk during an outage."""

    def find(
        self, pool: PoolName, kind: PinKind, id: str, *, now: float
    ) -> asyncio.Future[AssignmentId | None]: ...


class DrainStore(Protocol):
    async def current(self, *, now: float) -> Mapping[UpstreamName, float]:
        """Until when each node gets no new work."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What outlives a request, and a gateway."""

    circuits: CircuitStore
    requests: RequestStore
    pins: PinStore
    drains: DrainStore
