"""Which handler answers a path, and what to say where none does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple
from urllib.parse import unquote

from llmgw.core.errors import MethodNotAllowed, NotFound
from llmgw.core.types import Dialect
from llmgw.web.incoming import Handler

MAX_GUESS_CHARS: Final = 200
BASE: Final = "/v1"
MESSAGES: Final = "/v1/messages"
METRICS: Final = "/metrics"
ID: Final = "{id}"


@dataclass(frozen=True, slots=True)
class Page:
    """One path with its handlers by method; with `takes_tail` it also owns what lies below.

    A path with `{id}` in it takes one segment there, which becomes the tail.
    """

    path: str
    handlers: Mapping[str, Handler]
    dialect: Dialect = Dialect.JSON
    takes_tail: bool = False

    @property
    def allow(self) -> str:
        names = {*self.handlers, "OPTIONS"} | ({"HEAD"} if "GET" in self.handlers else set())
        return ", ".join(sorted(names))

    def handler(self, method: str) -> Handler:
        """A HEAD is answered as the GET, without its body (RFC 9110, 9.3.2)."""
        found = self.handlers.get("GET" if method == "HEAD" else method)
        if found is None:
            raise MethodNotAllowed(
                f"{self.path} takes {self.allow}", headers=(("allow", self.allow),)
            )
        return found


class Match(NamedTuple):
    page: Page
    tail: str = ""


class Table:
    """All pages of one listener. No path is ever answered by a redirect: clients lose their key
    on the way."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._pages = {page.path: page for page in pages}
        self._exact = {path: Match(page) for path, page in self._pages.items()}
        self._owners = tuple(page for page in self._pages.values() if page.takes_tail)
        self._patterns = tuple(
            (_pattern_of(page.path), page) for page in self._pages.values() if ID in page.path
        )

    def find(self, path: str) -> Match | None:
        """`path` as the request line has it, without the query; a trailing slash is accepted."""
        match = self._exact.get(path) or self._exact.get(path.rstrip("/") or "/")
        if match is not None:
            return match
        for pattern, one in self._patterns:
            if found := pattern.fullmatch(path):
                return Match(one, unquote(found[1]))
        for owner in self._owners:
            if path.startswith(f"{owner.path}/"):
                return Match(owner, unquote(path[len(owner.path) + 1 :]))
        return self._exact.get(unquote(path).rstrip("/")) if "%" in path else None

    def missing(self, path: str) -> NotFound:
        """A 404 that names the URL that was probably meant, and nothing that the client wrote."""
        if path.rstrip("/") == METRICS:
            return NotFound("unknown URL; metrics are served at gateway.metrics_listen")
        guess = self._guess(path[:MAX_GUESS_CHARS].lower().rstrip("/"))
        return NotFound(f"unknown URL; did you mean {guess}?")

    def _guess(self, path: str) -> str:
        known = sorted(self._pages, key=len, reverse=True)
        for one in known:
            below = one.removeprefix(BASE)
            if len(below) > 1 and (path.endswith(below) or (path and one.endswith(path))):
                return one
        close = get_close_matches(path, known, n=1, cutoff=0.5)
        return close[0] if close else self._usual()

    def _usual(self) -> str:
        return next(iter(self._pages))


def _pattern_of(path: str) -> re.Pattern[str]:
    before, _, after = path.partition(ID)
    return re.compile(f"{re.escape(before)}([^/]+){re.escape(after)}/?")


def dialect_of(path: str) -> Dialect:
    """Whose error shape an unknown path is refused in."""
    below = path == MESSAGES or path.startswith(f"{MESSAGES}/")
    return Dialect.MESSAGES if below else Dialect.JSON
