"""A client's request as a value: parsed once, then trusted; its bytes stay what they were."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from llmgw.core import forms
from llmgw.core.config import ModelsConfig
from llmgw.core.errors import InvalidRequest
from llmgw.core.routes import ModelIn, Route
from llmgw.core.types import Dialect, Headers, RouteClass

MAX_DEPTH = 1000
MAX_FILES = 256  # that one request may refer to: each may have to be looked up
SESSION_HEADERS = (
    "x-session-id",
    "session-id",
    "session_id",
    "x-session-affinity",
    "x-codex-session-id",
    "x-codex-conversation-id",
)

ESCAPED_MODEL = re.compile(
    rb'"(?:m|\\u00[46]d)(?:o|\\u00[46]f)(?:d|\\u00[46]4)(?:e|\\u00[46]5)(?:l|\\u00[46]c)"',
    re.IGNORECASE,
)
TOKEN = re.compile(rb'("(?:[^"\\]++|\\.)*+")(\s*:\s*)?|[\[\]{}]', re.DOTALL)
OPENING = b"{["
CLOSING = b"}]"
SURROGATE = re.compile("[\ud800-\udfff]")


class Call(NamedTuple):
    """One inference request."""

    route: Route
    model: str
    stream: bool
    body: bytes  # to be forwarded: the client's, but for a default model that was put in
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
    body: bytes,
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
    body: bytes,
    models: ModelsConfig,
    request_id: str,
) -> Call:
    """The same for a body that was parsed already."""
    model = _model_of(document, body)
    if not model:
        model = default_model(models)
        body = with_model(body, model, present="model" in document)
    named = _first_lines(headers)
    responses = route.dialect is Dialect.RESPONSES
    return Call(
        route=route,
        model=model,
        stream=route.streams and document.get("stream") is True,
        body=body,
        target=route.path + _query(target),
        headers=headers,
        request_id=request_id,
        previous_response_id=_text(document, "previous_response_id") if responses else None,
        file_ids=_file_ids(document) if responses and b"file_id" in body else (),
        cache_key=_text(document, "prompt_cache_key"),
        session=_session_of(named),
        store=document.get("store") is not False,
        stainless_retries=_count(named.get("x-stainless-retry-count", "")),
    )


def with_model(body: bytes, model: str, *, present: bool) -> bytes:
    """Put the model into a JSON object that has none, or null, or "": no other byte changes."""
    value = orjson.dumps(model)
    if not present:
        start = body.index(b"{") + 1
        comma = b"" if body[start:].lstrip().startswith(b"}") else b","
        return body[:start] + b'"model":' + value + comma + body[start:]
    start = next(at for key, at in _members(body) if key == "model")
    end = start + (2 if body[start : start + 1] == b'"' else len("null"))
    return body[:start] + value + body[end:]


def _call_of_form(
    route: Route, target: str, headers: Headers, body: bytes, models: ModelsConfig, request_id: str
) -> Call:
    form = forms.parse_form(headers, body)
    model = form.model or default_model(models)
    named = _first_lines(headers)
    return Call(
        route=route,
        model=model,
        stream=route.streams and form.stream,
        body=body if form.model else forms.with_model(body, form, model),
        target=route.path + _query(target),
        headers=headers,
        request_id=request_id,
        session=_session_of(named),
        stainless_retries=_count(named.get("x-stainless-retry-count", "")),
    )


def _first_lines(headers: Headers) -> dict[str, str]:
    return dict(reversed(headers))  # of several lines of a name the first counts


def _session_of(named: dict[str, str]) -> str | None:
    if named.keys().isdisjoint(SESSION_HEADERS):
        return None
    return next((named[one] for one in SESSION_HEADERS if named.get(one)), None)


def parse_object(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _second_opinion(body)
    if not isinstance(document, dict):
        raise InvalidRequest("the request body must be a JSON object")
    if _has_more(body, b"{", MAX_DEPTH // 2) or _has_more(body, b"[", MAX_DEPTH // 2):
        _refuse_depth(document)
    return document


def _second_opinion(body: bytes) -> Any:
    """Half a surrogate pair as an escape, which clients cut text to, is legal JSON (RFC 8259,
    section 8.2), though orjson refuses it: the upstream is to judge.
    """
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant, parse_int=float)
    except (ValueError, RecursionError):
        raise InvalidRequest("the request body is not valid JSON in UTF-8") from None


def _has_more(body: bytes, sign: bytes, count: int) -> bool:
    """By `find`, which is memchr(3): `bytes.count` takes six times as long as the parser."""
    at = -1
    for _ in range(count + 1):
        at = body.find(sign, at + 1)
        if at < 0:
            return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON


def _refuse_depth(document: dict[str, Any]) -> None:
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise InvalidRequest(f"the request body is nested deeper than {MAX_DEPTH} levels")


def _model_of(document: dict[str, Any], body: bytes) -> str:
    """The model that was asked for; "" where the default is to take its place."""
    if _is_suspicious(document, body):
        spellings = [key for key, _ in _members(body) if key.lower() == "model"]
        if spellings not in ([], ["model"]):
            raise InvalidRequest("`model` must be given once, in lower case", param="model")
    model = document.get("model")
    if model is None:
        return ""
    if not isinstance(model, str) or not _is_text(model):
        raise InvalidRequest("`model` must be a string", param="model")
    return model


def _is_suspicious(document: dict[str, Any], body: bytes) -> bool:
    """Whether the key may stand there twice, in other case, or behind escapes: parsed, a key that
    is repeated is one. Nothing here copies a large body."""
    if body.count(b'"model"') > 1:
        return True
    if b"\\" in body and b"\\u00" in body and ESCAPED_MODEL.search(body):
        return True
    return any(len(key) == len("model") and key.lower() == "model" != key for key in document)


def _members(body: bytes) -> Iterator[tuple[str, int]]:
    """The keys of a valid JSON object's own members, and where each value begins."""
    depth = 0
    for token in TOKEN.finditer(body):
        first = body[token.start()]
        if first in OPENING:
            depth += 1
        elif first in CLOSING:
            depth -= 1
        elif depth == 1 and token[2] is not None:
            yield json.loads(token[1]), token.end()


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
