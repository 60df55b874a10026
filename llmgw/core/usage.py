"""Token counts, read where an upstream tells them: in the end of a stream, or in a body."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from llmgw.core import document
from llmgw.core.types import Dialect

_LONGEST_USAGE = 4096
_MOST_MENTIONS = (
    64  # of the word in one answer, from its end; more is no usage but somebody's JSON
)

# In JSON a quote inside a string is escaped, so `"usage"` in the bytes is never part of a text.
_KEY = b'"usage"'
_OBJECT = re.compile(rb'"usage"\s*:\s*(?=\{)')
_DECODER = json.JSONDecoder()


class Usage(NamedTuple):
    """None: the upstream did not tell. `tokens_cached` is a part of `tokens_in`."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None


UNKNOWN = Usage()


def usage_of_body(body: bytes, dialect: Dialect) -> Usage:
    """The last usage object in a JSON body or in the end of a stream; nothing else is parsed."""
    at = len(body)
    for _ in range(_MOST_MENTIONS):
        at = body.rfind(_KEY, 0, at)
        if at < 0:
            break
        usage = _usage_at(body, at, dialect)
        if usage != UNKNOWN:
            return usage
    return UNKNOWN


def usage_of_answer(answer: object, body: bytes, dialect: Dialect) -> Usage:
    """The same of a whole answer that was parsed already: most tell it beside their output."""
    told = answer.get("usage") if isinstance(answer, dict) else None
    usage = UNKNOWN if told is None else _usage_of(told, dialect)
    return usage_of_body(body, dialect) if usage == UNKNOWN else usage


def first_usage(body: bytes, dialect: Dialect) -> Usage:
    """The same from the other end: a messages stream tells its input when it starts."""
    at = body.find(_KEY)
    return UNKNOWN if at < 0 else _usage_at(body, at, dialect)


def merge(first: Usage, last: Usage) -> Usage:
    """What the start of a stream told, unless its end tells it anew."""
    if last.tokens_in is not None:
        return last
    return Usage(first.tokens_in, last.tokens_out, first.tokens_cached)


def _usage_at(body: bytes, at: int, dialect: Dialect) -> Usage:
    found = _OBJECT.match(body, at)
    if found is None:
        return UNKNOWN
    start = found.end()
    try:
        value = (
            _flat_object(body, start)
            or _DECODER.raw_decode(
                body[start : start + _LONGEST_USAGE].decode("utf-8", "replace")
            )[0]
        )
    except (ValueError, RecursionError):
        return UNKNOWN
    return _usage_of(value, dialect)


def _usage_of(value: object, dialect: Dialect) -> Usage:
    if not isinstance(value, dict):
        return UNKNOWN
    return _anthropic(value) if dialect is Dialect.MESSAGES else _openai(value)


def _openai(value: dict[str, object]) -> Usage:
    """chat and completions say prompt and completion, responses say input and output."""
    get = value.get
    tokens_in = get("prompt_tokens", get("input_tokens"))
    if type(tokens_in) is not int or tokens_in < 0:
        tokens_in = None
    tokens_out = get("completion_tokens", get("output_tokens"))
    if type(tokens_out) is not int or tokens_out < 0:
        tokens_out = None
    details = get("prompt_tokens_details") or get("input_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(tokens_in, tokens_out, cached)


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _anthropic(value: object) -> Usage:
    """`input_tokens` leaves out what the cache took part in; here the input is all of it."""
    fresh = document.count(value, "input_tokens")
    output = document.count(value, "output_tokens")
    if fresh is None:
        return Usage(None, output)
    read = document.count(value, "cache_read_input_tokens")
    written = document.count(value, "cache_creation_input_tokens")
    return Usage(fresh + (read or 0) + (written or 0), output, read)


def _flat_object(body: bytes, start: int) -> object:
    """An object without others in it, which ends at the next brace; None: it is none."""
    end = body.find(b"}", start, start + _LONGEST_USAGE) + 1
    if not end or body.find(b"{", start + 1, end) >= 0:
        return None
    return document.parse(body[start:end])
