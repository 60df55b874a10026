"""A client's websocket handshake: what it offers, and the 101 that accepts it (RFC 6455, 4.2).

Browsers cannot set headers on a websocket, so they offer their key as a subprotocol. It is a
secret: it is taken out here, and never chosen or passed on.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from typing import Final

from aiohttp import HttpVersion11

from llmgw.core.errors import InvalidRequest
from llmgw.core.policy import token_of
from llmgw.core.types import Headers
from llmgw.upstream.handshake import accept_of
from llmgw.web.incoming import Incoming

KEY_PROTOCOL: Final = "openai-insecure-api-key."
PRIVATE_PROTOCOLS: Final = ("openai-organization.", "openai-project.")
VERSION: Final = "13"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A handshake that can be accepted."""

    accept: str
    protocols: tuple[str, ...]  # without those that carry the client's own affairs

    def headers(self, protocol: str | None) -> Headers:
        """Of the 101; `protocol` must be one that the client offered."""
        lines: Headers = (("upgrade", "websocket"), ("sec-websocket-accept", self.accept))
        if protocol in self.protocols:
            lines += (("sec-websocket-protocol", str(protocol)),)
        return lines


def is_upgrade(incoming: Incoming) -> bool:
    """Whether a websocket is asked for at all."""
    tokens = _tokens(incoming, "connection")
    return "upgrade" in tokens and "websocket" in _tokens(incoming, "upgrade")


def parse_upgrade(incoming: Incoming) -> Upgrade:
    """Raises `InvalidRequest`."""
    key = incoming.header("Sec-WebSocket-Key") or ""
    if incoming.request.method != "GET" or incoming.request.version < HttpVersion11:
        raise InvalidRequest("a websocket begins with a GET of HTTP/1.1")
    if incoming.header("Sec-WebSocket-Version") != VERSION:
        raise InvalidRequest(
            "this version of the websocket protocol is not spoken here",
            status=426,
            code="upgrade_required",
            headers=(("sec-websocket-version", VERSION),),
        )
    if not _is_key(key):
        raise InvalidRequest("the `sec-websocket-key` header is no 16 bytes in base64")
    private = (KEY_PROTOCOL, *PRIVATE_PROTOCOLS)
    offered = offered_protocols(incoming.headers)
    return Upgrade(accept_of(key), tuple(one for one in offered if not one.startswith(private)))


def token_of_upgrade(headers: Headers) -> str | None:
    """The client's key, from a header or, as browsers give it, a subprotocol."""
    found = token_of(headers)
    if found is not None:
        return found
    keys = (one for one in offered_protocols(headers) if one.startswith(KEY_PROTOCOL))
    return next((one[len(KEY_PROTOCOL) :] for one in keys), None)


def offered_protocols(headers: Headers) -> tuple[str, ...]:
    lines = (value for name, value in headers if name == "sec-websocket-protocol")
    return tuple(one.strip() for line in lines for one in line.split(",") if one.strip())


def _tokens(incoming: Incoming, name: str) -> set[str]:
    lines = (value for key, value in incoming.headers if key == name)
    return {one.strip().lower() for line in lines for one in line.split(",")}


def _is_key(key: str) -> bool:
    try:
        return len(b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False
