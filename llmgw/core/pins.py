"""Hard pins: ids that an upstream gave out tie later requests to the assignment that did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs, quote

from llmgw.core import document
from llmgw.core.errors import Conflict, NotFound
from llmgw.core.routes import Route
from llmgw.core.sse import EventCutter
from llmgw.core.types import AssignmentId, Dialect, Headers, RouteClass
from llmgw.core.wire import Call

LOOK_AT_BYTES = 64 * 1024  # of a stream's start, where the response says its id
LONGEST_ID = 512

# Of an event that is longer than what is looked at: it repeats the instructions and tools. In
# text that it repeats the quotes are escaped, so the first match is the event's own.
_RESPONSE_ID = re.compile(rb'"response"\s*:\s*\{\s*"id"\s*:\s*"([^"\\]{1,512})"')
_LEADING_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,512})"')


class PinKind(StrEnum):
    RESPONSE = "response"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that lives at the upstream that made it, by the id it has there."""

    kind: PinKind
    id: str


def resources_of(call: Call) -> tuple[Resource, ...]:
    """What the request continues on or refers to; most requests name nothing."""
    if call.previous_response_id is None and not call.file_ids:
        return ()
    files = tuple(Resource(PinKind.FILE, one) for one in call.file_ids)
    if call.previous_response_id is None:
        return files
    return (Resource(PinKind.RESPONSE, call.previous_response_id), *files)


def made_by(call: Call) -> PinKind | None:
    """What a successful answer to this request makes at the upstream, if it has to be found
    again there."""
    if call.route.method != "POST" or not call.store:
        return None
    if call.route.lane is RouteClass.FILE:
        return PinKind.FILE
    is_response = call.route.dialect is Dialect.RESPONSES and not call.is_compact
    return PinKind.RESPONSE if is_response and call.model else None


def call_of_resource(
    route: Route, id: str, *, query: str, headers: Headers, body: bytes, request_id: str
) -> Call:
    """A request for one of the routes that name no model; `id` is "" where a file is made."""
    is_file = route.lane is RouteClass.FILE
    return Call(
        route=route,
        model="",
        stream=route.streams and "true" in parse_qs(query.removeprefix("?")).get("stream", ()),
        body=body,
        target=route.path.replace("{id}", quote(id, safe="")) + query,
        headers=headers,
        request_id=request_id,
        previous_response_id=None if is_file or not id else id,
        file_ids=(id,) if is_file and id else (),
    )


def choose_pin(assignments: Sequence[AssignmentId | None]) -> AssignmentId | None:
    """Where the request has to go, of what is known of each resource; None: anywhere.

    Raises `Conflict` where no assignment has all of them.
    """
    known = {one for one in assignments if one is not None}
    if len(known) > 1:
        raise Conflict(
            "the files of this request lie at different upstreams; upload them again",
            code="file_assignment_conflict",
        )
    return next(iter(known), None)


def unknown_resource(kind: PinKind) -> NotFound:
    """The answer where a route names an id that this pool has not seen."""
    return NotFound(f"no {kind} with this id is known here", code=f"{kind}_not_found")


def id_of_answer(body: bytes) -> str | None:
    """The id of what a whole JSON answer, or the start of a long one, describes."""
    found = _LEADING_ID.match(body)
    if found is not None:
        return found[1].decode("utf-8", "replace")
    if len(body) > LOOK_AT_BYTES:
        return None
    return _fit(document.text(document.parse(body), "id"))


def id_of_stream(start: bytes) -> str | None:
    """The response's id, which its first events carry (`response.created`)."""
    for event in EventCutter().feed(start[:LOOK_AT_BYTES]):
        found = document.text(document.parse(event.data), "response", "id")
        if found is not None:
            return _fit(found)
    leading = _RESPONSE_ID.search(start, 0, LOOK_AT_BYTES)
    return None if leading is None else leading[1].decode("utf-8", "replace")


def _fit(found: str | None) -> str | None:
    return found if found and len(found) <= LONGEST_ID else None
