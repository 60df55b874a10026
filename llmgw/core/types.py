"""The words that every floor shares: ids, and the choices that a request is described by."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

UpstreamName = NewType("UpstreamName", str)
PoolName = NewType("PoolName", str)
AssignmentId = NewType("AssignmentId", str)  # "pool/upstream"
KeyId = NewType(
    "KeyId", str
)  # the first 16 hex digits of the key's SHA-256: safe to store and show

Headers = tuple[tuple[str, str], ...]
"""Header lines in order; names are lower case, values are latin-1 text (RFC 9110, section 5.5)."""

Body = bytes | bytearray
"""Of a client's request; a large one is left in the buffer that it was read to. Not changed."""

CLUSTER = PoolName("cluster")


class RouteClass(StrEnum):
    """The lane that circuits are kept by."""

    HTTP = "http"
    SSE = "sse"
    WEBSOCKET = "websocket"
    COMPACT = "compact"
    FILE = "file"
    AUDIO = "audio"


class Dialect(StrEnum):
    """Whose events and errors a route speaks."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    JSON = "json"  # OpenAI's error shape, no stream of its own


class Provenance(StrEnum):
    """Why the gateway believes that an assignment serves a model."""

    CONFIGURED = "configured"
    OBSERVED = "observed"
    PRESERVED = "preserved"


class Strategy(StrEnum):
    """How a pool orders candidates that are otherwise equal."""

    ROUND_ROBIN = "round_robin"
    LEAST_LOAD = "least_load"
    RENDEZVOUS = "rendezvous"
    LEAST_RECENT_SUCCESS = "least_recent_success"


def assignment_id(pool: PoolName, upstream: UpstreamName) -> AssignmentId:
    return AssignmentId(f"{pool}/{upstream}")
