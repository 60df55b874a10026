"""Which header lines pass, towards the upstream and towards the client: lists, as data."""

from __future__ import annotations

from llmgw.core.config import Upstream
from llmgw.core.types import Dialect, Headers


def upstream_headers(
    client: Headers, *, upstream: Upstream, request_id: str, instance: str
) -> Headers:
    raise NotImplementedError


def downstream_headers(
    answer: Headers, *, upstream: Upstream, request_id: str, dialect: Dialect, stream: bool
) -> Headers:
    """Without framing (`content-length`, `transfer-encoding`): that is the connection's."""
    raise NotImplementedError


def own_headers(*, request_id: str, dialect: Dialect, stream: bool = False) -> Headers:
    """What every answer carries, ours too."""
    raise NotImplementedError


def refuse_loop(headers: Headers, *, instance: str) -> None:
    """Raises `LoopDetected` where the request has been through this gateway before."""
    raise NotImplementedError


def retry_after_of(headers: Headers, *, wall: float) -> float | None:
    """Seconds that the upstream asks for (`retry-after-ms`, `retry-after`)."""
    raise NotImplementedError
