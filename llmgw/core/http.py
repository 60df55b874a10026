"""One HTTP call to an upstream as values: request, response head, and who takes the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from llmgw.core.errors import UpstreamError
from llmgw.core.types import Body, Headers


class UpstreamRequest(NamedTuple):
    """One HTTP request to an upstream; `target` stands behind the upstream's path prefix."""

    method: str
    target: str  # path and query, starts with "/"
    headers: Headers  # complete but for `host` and `content-length`, which the connection adds
    body: Body = b""


class ResponseHead(NamedTuple):
    status: int
    headers: Headers
    length: int | None = None  # the declared body length in bytes; None: chunked or until EOF

    def header(self, name: str) -> str | None:
        """The first line of that (lower-case) name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Rejection:
    """An upstream's answer to a websocket handshake that it does not accept."""

    head: ResponseHead
    body: bytes  # as much of it as is classified


class Bypass(Protocol):
    """A way for whole chunks from an upstream's socket to a client's, past sink and downstream."""

    passed: int  # bytes of data
    moved: bool  # set by each that passes


class Sink(Protocol):
    """Where an exchange pushes its body once it has been spliced; called from the event loop."""

    def feed(self, data: bytes, chunk: bytes | None = None) -> None:
        """Body bytes of one read, framing removed, never empty; `chunk`: the same as they came,
        where they were one whole chunk of the chunked coding (RFC 9112, section 7.1)."""

    def end(self, fault: UpstreamError | None) -> None:
        """The body ended: whole by its framing (None) or not. Called once, and last."""
