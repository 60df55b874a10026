"""One request at the door, with the way back to its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache

from aiohttp import web

from llmgw.core.types import Dialect, Headers
from llmgw.runtime.journey import Journey
from llmgw.web.downstream import HttpDownstream

KNOWN_NAME = 64  # longer header names are not worth keeping


def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


_known = lru_cache(maxsize=512)(_lower)


@dataclass(slots=True, eq=False)
class Incoming:
    """What a handler is given; it notes `key` and `model` for the access log."""

    request: web.BaseRequest
    request_id: str
    downstream: HttpDownstream
    route: str = "unknown"
    dialect: Dialect = Dialect.JSON
    tail: str = ""  # what follows the path of a route that takes an id, percent-decoded
    query: str = ""  # with its "?", or empty
    key: str | None = None
    model: str | None = None
    journey: Journey = field(default_factory=Journey)

    @property
    def headers(self) -> Headers:
        """The request's header lines in order: lower-case names, latin-1 values."""
        return tuple(
            [
                (
                    _known(name) if len(name) <= KNOWN_NAME else _lower(name),
                    value.decode("latin-1"),
                )
                for name, value in self.request.raw_headers
            ]
        )

    def header(self, name: str) -> str | None:
        return self.request.headers.get(name)


Handler = Callable[[Incoming], Awaitable[web.StreamResponse | None]]
"""Answers through `incoming.downstream`, or returns a response for aiohttp to send."""
