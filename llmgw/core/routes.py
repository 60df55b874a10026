"""The inference routes: one row each, with its dialect, its lane and where the model stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llmgw.core.types import Dialect, RouteClass


class ModelIn(StrEnum):
    BODY = "body"  # a JSON member
    FORM = "form"  # a multipart field
    QUERY = "query"
    NONE = "none"  # the route goes where an id lives


@dataclass(frozen=True, slots=True)
class Route:
    """One inference route of section 8 of the contract."""

    path: str  # as the client writes it, without trailing slash
    dialect: Dialect
    lane: RouteClass = RouteClass.HTTP  # a streaming request of a lane HTTP counts as SSE
    model_in: ModelIn = ModelIn.BODY
    streams: bool = False  # the dialect has event streams
    method: str = "POST"

    @property
    def capability(self) -> str:
        """What an upstream's `routes` calls it: those of an id belong to what made the id."""
        return self.path.partition("/{id}")[0]


def _json(path: str, dialect: Dialect = Dialect.JSON, *, streams: bool = False) -> Route:
    return Route(path, dialect, streams=streams)


def _form(path: str, lane: RouteClass, *, streams: bool = False) -> Route:
    return Route(path, Dialect.JSON, lane, ModelIn.FORM, streams=streams)


ROUTES: tuple[Route, ...] = (
    _json("/v1/chat/completions", Dialect.CHAT, streams=True),
    _json("/v1/completions", Dialect.COMPLETIONS, streams=True),
    _json("/v1/responses", Dialect.RESPONSES, streams=True),
    Route("/v1/responses/compact", Dialect.RESPONSES, RouteClass.COMPACT, streams=True),
    _json("/v1/messages", Dialect.MESSAGES, streams=True),
    _json("/v1/messages/count_tokens", Dialect.MESSAGES),
    _json("/v1/embeddings"),
    _json("/v1/rerank"),
    _json("/v1/score"),
    _json("/v1/moderations"),
    _json("/v1/images/generations"),
    _json("/v1/audio/speech"),
    _json("/tokenize"),
    _json("/detokenize"),
    _form("/v1/audio/transcriptions", RouteClass.AUDIO, streams=True),
    _form("/v1/audio/translations", RouteClass.AUDIO),
    _form("/v1/images/edits", RouteClass.HTTP),
    _form("/v1/images/variations", RouteClass.HTTP),
)

BY_PATH: dict[str, Route] = {route.path: route for route in ROUTES}


def _id(
    method: str, path: str, *, dialect: Dialect, lane: RouteClass, streams: bool = False
) -> Route:
    return Route(path, dialect, lane, ModelIn.NONE, streams=streams, method=method)


def _response(method: str, below: str = "", *, streams: bool = False) -> Route:
    path = "/v1/responses/{id}" + below
    return _id(method, path, dialect=Dialect.RESPONSES, lane=RouteClass.HTTP, streams=streams)


def _file(method: str, below: str = "") -> Route:
    return _id(method, "/v1/files" + below, dialect=Dialect.JSON, lane=RouteClass.FILE)


ID_ROUTES: tuple[Route, ...] = (
    _response("GET", streams=True),  # `?stream=true` goes on with one that was begun
    _response("DELETE"),
    _response("POST", "/cancel"),
    _response("GET", "/input_items"),
    _file("POST"),
    _file("GET", "/{id}"),
    _file("DELETE", "/{id}"),
    _file("GET", "/{id}/content"),
)
"""What lives at the upstream that made it: these name no model, and go where the id is."""
