"""A client's request as a value: parsed once, then trusted; its bytes stay what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from llmgw.core import forms
from llmgw.core.config import ModelsConfig
from llmgw.core.errors import InvalidRequest
from llmgw.core.members import (
    LARGE,
    MODEL,
    OTHER_SPELLINGS,
    is_model_spelled_once,
    with_model,
)
from llmgw.core.objects import MAX_DEPTH, parse_object
from llmgw.core.routes import ModelIn, Route
from llmgw.core.types import Body, Dialect, Headers, RouteClass

MAX_FILES = 256  # that one request may refer to: each may have to be looked up
SESSION_HEADERS = (
    "x-session-id",
    "session-id",
    "session_id",
    "x-session-affinity",
    "x-codex-session-id",
    "x-codex-conversation-id",
)

# Not as a literal: its lone surrogates have no UTF-8, which a compiler needs.
SURROGATE = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")


class Asker(NamedTuple):
    """What the header lines say of a request, whatever its body is."""

    session: str | None = None
    stainless_retries: int = 0


class Call(NamedTuple):
    """One inference request."""

    route: Route
    model: str
    stream: bool
    body: Body  # to be forwarded: the client's, but for a default model that was put in
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
    body: Body,
    models: ModelsConfig,
    request_id: str,
) -> Call:
    """Raises `InvalidRequest`. `target` is the request line's, `body` decoded."""
    if route.model_in is ModelIn.FORM:
        return _call_of_form(route, target, headers, body, models, request_id)
    return build_call(
        parse_object(body),
        route,
        target=target,
        headers=headers,
        body=body,
        models=models,
        request_id=request_id,
    )


def build_call(
    document: dict[str, Any],
    route: Route,
    *,
    target: str,
    headers: Headers,
    body: Body,
    models: ModelsConfig,
    request_id: str,
) -> Call:
    """The same for a body that was parsed already."""
    model = _model_of(document, body)
    if not model:
        model = default_model(models)
        body = with_model(body, model, present="model" in document)
    session, stainless_retries = asker_of(headers)
    responses = route.dialect is Dialect.RESPONSES
    return Call(
        route,
        model,
        route.streams and document.get("stream") is True,
        body,
        route.path + _query(target),
        headers,
        request_id,
        _text(document, "previous_response_id") if responses else None,
        _file_ids(document) if responses and b"file_id" in body else (),
        _text(document, "prompt_cache_key"),
        session,
        document.get("store") is not False,
        stainless_retries,
    )


def short_call(
    body: Body, route: Route, target: str, headers: Headers, request_id: str, asker: Asker
) -> Call | None:
    """What `build_call` gives for a short body in which nothing is odd, in one go.

    None: it has to be looked at more closely. `target` is the upstream's.
    """
    size = len(body)
    if size > LARGE or route.dialect is Dialect.RESPONSES:
        return None
    if size > 2 * MAX_DEPTH and body.count(b"{") + body.count(b"[") > MAX_DEPTH // 2:
        return None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(document) is not dict or "prompt_cache_key" in document:
        return None
    model = document.get("model")
    if type(model) is not str or not model or not model.isascii():
        return None
    if body.count(MODEL) > 1 or b"\\u00" in body or not OTHER_SPELLINGS.isdisjoint(document):
        return None
    return Call(
        route,
        model,
        route.streams and document.get("stream") is True,
        body,
        target,
        headers,
        request_id,
        None,
        (),
        None,
        asker.session,
        document.get("store") is not False,
        asker.stainless_retries,
    )


def _call_of_form(
    route: Route, target: str, headers: Headers, body: Body, models: ModelsConfig, request_id: str
) -> Call:
    form = forms.parse_form(headers, body)
    model = form.model or default_model(models)
    session, stainless_retries = asker_of(headers)
    return Call(
        route=route,
        model=model,
        stream=route.streams and form.stream,
        body=body if form.model else forms.with_model(body, form, model),
        target=route.path + _query(target),
        headers=headers,
        request_id=request_id,
        session=session,
        stainless_retries=stainless_retries,
    )


def asker_of(headers: Headers) -> Asker:
    named = dict(reversed(headers))  # of several lines of a name the first counts
    return Asker(_session_of(named), _count(named.get("x-stainless-retry-count", "")))


def _session_of(named: dict[str, str]) -> str | None:
    if named.keys().isdisjoint(SESSION_HEADERS):
        return None
    return next((named[one] for one in SESSION_HEADERS if named.get(one)), None)


def _model_of(document: dict[str, Any], body: Body) -> str:
    """The model that was asked for; "" where the default is to take its place."""
    if not is_model_spelled_once(document, body):
        raise InvalidRequest("`model` must be given once, in lower case", param="model")
    model = document.get("model")
    if model is None:
        return ""
    if not isinstance(model, str) or not _is_text(model):
        raise InvalidRequest("`model` must be a string", param="model")
    return model


def default_model(models: ModelsConfig) -> str:
    if models.default is None:
        raise InvalidRequest(
            "no model given, and no default is configured",
            code="model_not_specified",
            param="model",
        )
    return models.default


def _query(target: str) -> str:
    _, mark, query = target.partition("?")
    return mark + query


def _file_ids(document: dict[str, Any]) -> tuple[str, ...]:
    """Of each `input_file`, which stands in `input` or in the content of a message there."""
    found: dict[str, None] = {}
    for item in _objects(document.get("input")):
        for part in (item, *_objects(item.get("content"))):
            file_id = _text(part, "file_id") if part.get("type") == "input_file" else None
            if file_id:
                found[file_id] = None
    if len(found) > MAX_FILES:
        raise InvalidRequest(f"more than {MAX_FILES} files are referred to", param="input")
    return tuple(found)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def _text(document: dict[str, Any], name: str) -> str | None:
    value = document.get(name)
    return value if isinstance(value, str) and value and _is_text(value) else None


def _is_text(value: str) -> bool:
    """No lone surrogate: it can be encoded."""
    return value.isascii() or not SURROGATE.search(value)


def _count(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 4 else 0
