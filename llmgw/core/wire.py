"""A client's request as a value: parsed once, then trusted; its bytes stay what they were."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.config import ModelsConfig
from llmgw.core.routes import Route
from llmgw.core.types import Headers, RouteClass


@dataclass(frozen=True, slots=True)
class Call:
    """One inference request."""

    route: Route
    model: str
    stream: bool
    body: bytes  # to be forwarded: the client's, but for a default model that was put in
    target: str  # path and query for the upstream
    headers: Headers  # the client's, unfiltered
    request_id: str
    previous_response_id: str | None = None
    file_ids: tuple[str, ...] = ()
    cache_key: str | None = None
    session: str | None = None
    store: bool = True
    stainless_retries: int = 0

    @property
    def lane(self) -> RouteClass:
        if self.stream and self.route.lane is RouteClass.HTTP:
            return RouteClass.SSE
        return self.route.lane

    @property
    def is_compact(self) -> bool:
        return self.route.lane is RouteClass.COMPACT


def parse_call(
    route: Route,
    *,
    target: str,
    headers: Headers,
    body: bytes,
    models: ModelsConfig,
    request_id: str,
) -> Call:
    """Raises `InvalidRequest`. `target` is the request line's, `body` decoded."""
    raise NotImplementedError
