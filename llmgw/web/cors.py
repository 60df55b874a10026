"""Browsers of configured origins may call the gateway (Fetch standard, CORS protocol)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from llmgw.core.types import Headers
from llmgw.web.incoming import Incoming

ANY: Final = "*"
MAX_AGE: Final = "600"
_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
USUAL_NAMES: Final = "authorization, content-type, x-api-key, api-key"
EXPOSED: Final = "x-request-id, request-id, retry-after, x-should-retry, x-llmgw-excluded"


def origin_lines(origin: str | None, allowed: Sequence[str]) -> bytes:
    """Header lines for every answer to a request of a browser's page."""
    if not allowed:
        return b""
    vary = b"" if ANY in allowed else b"vary: origin\r\n"  # caches must keep them apart
    if origin is None or (origin not in allowed and ANY not in allowed):
        return vary
    shown = ANY if ANY in allowed else origin
    lines = f"access-control-allow-origin: {shown}\r\naccess-control-expose-headers: {EXPOSED}\r\n"
    return lines.encode("latin-1") + vary


def answer_options(incoming: Incoming, allow: str, allowed: Sequence[str]) -> None:
    """A preflight carries no key, so none is asked for."""
    headers: Headers = (("allow", allow),)
    if allowed and incoming.header("Access-Control-Request-Method") is not None:
        headers += (
            ("access-control-allow-methods", allow),
            ("access-control-allow-headers", _asked_names(incoming)),
            ("access-control-max-age", MAX_AGE),
        )
    incoming.downstream.respond(204, headers, b"")


def _asked_names(incoming: Incoming) -> str:
    """The names that the browser asks for: a wildcard would not cover `authorization`."""
    asked = incoming.header("Access-Control-Request-Headers") or ""
    return asked if _NAMES.fullmatch(asked) else USUAL_NAMES
