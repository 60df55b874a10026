"""A turn of a responses websocket: the client's frame as a call, the upstream's as events.

https://platform.openai.com/docs/guides/websocket-mode
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from llmgw.core import document
from llmgw.core.classify import Fault
from llmgw.core.config import ModelsConfig
from llmgw.core.errors import FaultKind, InvalidRequest
from llmgw.core.failures import ErrorObject, find_error
from llmgw.core.objects import parse_whole
from llmgw.core.routes import Route
from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import Event
from llmgw.core.transcript import Lead, items_of, joined
from llmgw.core.types import Dialect, Headers, RouteClass
from llmgw.core.wire import Call, build_call

CREATE = "response.create"
IGNORED = frozenset({"response.processed"})  # Codex acknowledges what it has taken
TURNS = Route("/v1/responses", Dialect.RESPONSES, RouteClass.WEBSOCKET, streams=True)
OF_THE_SOCKET = frozenset({"type", "stream", "stream_options", "background", "generate"})
"""Members that have a meaning, or none, on a websocket alone."""

STARTS = frozenset({"response.created", "response.queued"})
LIFECYCLE = STARTS | {
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
}
PLAIN = re.compile(rb'\s*\{\s*"type"\s*:\s*"([\w.]{1,80})"')
SETTLED_KEPT = 64


@dataclass(frozen=True, slots=True)
class Turn:
    """One `response.create`; `call.body` is the frame for an upstream that takes websockets."""

    call: Call
    members: dict[str, object] = field(repr=False)  # of the request, without its frame
    is_warm_up: bool = False

    @property
    def previous(self) -> str | None:
        return self.call.previous_response_id

    @property
    def input(self) -> object:
        return self.members.get("input")

    def frame(self, lead: Lead | None = None) -> bytes:
        """As the client sent it, or with what led up to it in place of the reference."""
        if lead is None:
            return bytes(self.call.body)  # as which it came: not a copy
        return self._written(lead, b'"type":"response.create",')

    def body(self, lead: Lead | None = None) -> bytes:
        """The same turn as the body of a streaming POST."""
        return self._written(lead, b'"stream":true,')

    def _written(self, lead: Lead | None, first: bytes) -> bytes:
        members = {name: one for name, one in self.members.items() if name not in OF_THE_SOCKET}
        members["model"] = self.call.model
        if lead is None:
            return b"{" + first + document.dump(members)[1:]
        members.pop("input", None)
        members.pop("previous_response_id", None)
        if lead.base is not None:
            members["previous_response_id"] = lead.base
        items = joined(lead.items, items_of(self.input))
        return b"{" + first + b'"input":[' + items + b"]," + document.dump(members)[1:]


def parse_turn(
    frame: bytes, *, target: str, headers: Headers, models: ModelsConfig, request_id: str
) -> Turn | None:
    """None: a frame that needs no answer. Raises `InvalidRequest`."""
    envelope = parse_whole(frame)
    kind = envelope.get("type")
    if kind in IGNORED:
        return None
    if kind != CREATE:
        raise InvalidRequest(f"the `type` of a frame must be `{CREATE}`", param="type")
    nested = envelope.get("response")
    is_nested = isinstance(nested, dict)
    members: dict[str, object] = nested if isinstance(nested, dict) else envelope
    call = build_call(
        members,
        TURNS,
        target=target,
        headers=headers,
        body=document.dump(members) if is_nested else frame,
        models=models,
        request_id=request_id,
    )
    body = b'{"type":"response.create","response":' + call.body + b"}" if is_nested else call.body
    is_warm_up = False in (envelope.get("generate"), members.get("generate"))
    return Turn(call._replace(body=body, stream=True), members, is_warm_up)


def session_headers(headers: Headers) -> Headers:
    """The upgrade's lines that each of its turns is sent with, whatever it travels on."""
    return tuple(line for line in headers if not line[0].startswith("sec-websocket-"))


def bridged(turn: Turn, lead: Lead | None) -> Call:
    """The turn as a streaming POST, for an upstream that takes no websockets."""
    ours = ("content-type", "accept")
    kept = tuple(line for line in turn.call.headers if line[0] not in ours)
    headers = (*kept, ("content-type", "application/json"), ("accept", "text/event-stream"))
    return turn.call._replace(body=turn.body(lead), headers=headers)


# --- what an upstream's frame says


def kind_of_frame(frame: bytes) -> str | None:
    """Its `type`, mostly without parsing it: a delta need not be understood to be passed on."""
    plain = PLAIN.match(frame)
    if plain is not None:
        return plain[1].decode()
    return document.text(document.parse(frame), "type")


def sight_of_frame(frame: bytes) -> Sight:
    return sight_of(Event(frame, None, frame), Dialect.RESPONSES)


def fault_of_frame(frame: bytes) -> tuple[Fault, ErrorObject | None]:
    """A failure, as the table of verdicts takes it: a frame may state the status it stands for.

    A model miss of the kind that lacks a code is known by its shape, not by the status.
    """
    answer = document.parse(frame)
    error = find_error(answer)
    status = document.count(answer, "status")
    stated = status if status is not None and 400 <= status <= 599 else None
    if stated is None or (error is not None and error.is_codeless_model_miss):
        return Fault.from_error(FaultKind.IN_BAND, error, status=200), error
    return Fault.from_error(FaultKind.STATUS, error, status=stated), error


class Turnstile:
    """On an upstream that serves one turn after another: lets pass what belongs to this one.

    A turn starts with `response.created`; what comes before that is late. Later on, events that
    name a settled response are.
    """

    def __init__(self) -> None:
        self._settled: deque[str] = deque(maxlen=SETTLED_KEPT)
        self._current: str | None = None
        self._is_used = False
        self._waiting = False

    def begin(self) -> None:
        """The next turn's frame is about to be sent."""
        if self._current is not None:
            self._settled.append(self._current)
        self._current = None
        self._waiting = self._is_used
        self._is_used = True

    def admits(self, frame: bytes) -> bool:
        kind = kind_of_frame(frame)
        if kind not in LIFECYCLE:
            return kind == "error" or not self._waiting
        named = document.text(document.parse(frame), "response", "id")
        if named in self._settled:
            return False
        self._current = named or self._current
        self._waiting = False
        return True
