"""What an assignment can do: as configured, else as requests have shown, else unknown.

Unknown stays unknown: nothing is inferred from a name, and nothing is tried to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llmgw.core.admin_seen import Sighting
from llmgw.core.config import Upstream
from llmgw.core.types import RouteClass


class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Source(StrEnum):
    CONFIGURED = "configured"
    SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Capability:
    name: str
    answer: Answer = Answer.UNKNOWN
    source: Source | None = None  # None: unknown


def capabilities_of(upstream: Upstream, seen: Sighting) -> tuple[Capability, ...]:
    """Whether a model uses tools is told by answers' contents alone, which nobody looks at."""
    return (
        _route("responses", "/v1/responses", upstream, seen),
        _route("messages", "/v1/messages", upstream, seen),
        _streaming(seen),
        Capability("tools"),
        _websocket(upstream, seen),
    )


def _route(name: str, path: str, upstream: Upstream, seen: Sighting) -> Capability:
    if upstream.routes is not None:
        return Capability(name, _answer(path in upstream.routes), Source.CONFIGURED)
    if path in seen.routes:
        return Capability(name, Answer.YES, Source.SEEN)
    if path in seen.absent:
        return Capability(name, Answer.NO, Source.SEEN)
    return Capability(name)


def _streaming(seen: Sighting) -> Capability:
    if seen.streamed:
        return Capability("streaming", Answer.YES, Source.SEEN)
    return Capability("streaming")


def _websocket(upstream: Upstream, seen: Sighting) -> Capability:
    if upstream.websocket is not None:
        return Capability("websocket", _answer(upstream.websocket), Source.CONFIGURED)
    if any(lane is RouteClass.WEBSOCKET for _, lane in seen.served):
        return Capability("websocket", Answer.YES, Source.SEEN)
    return Capability("websocket")


def _answer(yes: bool) -> Answer:
    return Answer.YES if yes else Answer.NO
