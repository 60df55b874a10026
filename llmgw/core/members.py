"""The members of a JSON object as they stand in its bytes: where each begins, and how its key is
spelled. What is parsed no longer tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import orjson

from llmgw.core.types import Body

MODEL = b'"model"'
LARGE = 8192  # bytes
MOST_QUOTES = 128
ESCAPED_MODEL = re.compile(
    rb'"(?:m|\\u00[46]d)(?:o|\\u00[46]f)(?:d|\\u00[46]4)(?:e|\\u00[46]5)(?:l|\\u00[46]c)"',
    re.IGNORECASE,
)
OTHER_SPELLINGS = frozenset(map("".join, product(*zip("model", "MODEL", strict=True)))) - {"model"}
TOKEN = re.compile(rb'("(?:[^"\\]++|\\.)*+")(\s*:\s*)?|[\[\]{}]', re.DOTALL)
OPENING = b"{["
CLOSING = b"}]"


def is_model_spelled_once(document: dict[str, Any], body: Body) -> bool:
    """Whether the key stands there at most once and as it is written: parsed, a key that is
    repeated is one, and upstreams differ in which of them counts."""
    if not _is_suspicious(document, body):
        return True
    spellings = [key for key, _ in _members(body) if key.lower() == "model"]
    return spellings in ([], ["model"])


def with_model(body: Body, model: str, *, present: bool) -> Body:
    """Put the model into a JSON object that has none, or null, or "": no other byte changes."""
    value = orjson.dumps(model)
    if not present:
        start = body.index(b"{") + 1
        comma = b"" if body[start:].lstrip().startswith(b"}") else b","
        return body[:start] + MODEL + b":" + value + comma + body[start:]
    start = next(at for key, at in _members(body) if key == "model")
    end = start + (2 if body[start : start + 1] == b'"' else len("null"))
    return body[:start] + value + body[end:]


def _is_suspicious(document: dict[str, Any], body: Body) -> bool:
    """Whether the key may stand there twice, in other case, or behind escapes. Nothing here
    copies a large body."""
    if _is_there_twice(body):
        return True
    if b"\\" in body and b"\\u00" in body and ESCAPED_MODEL.search(body):
        return True
    return not OTHER_SPELLINGS.isdisjoint(document)


def _is_there_twice(body: Body) -> bool:
    """In a large body from quote to quote, of which a long text has few: `find` of one character
    is memchr(3), many times as fast as that of a word."""
    found, at = 0, -1
    for _ in range(MOST_QUOTES if len(body) > LARGE else 0):
        at = body.find(b'"', at + 1)
        if at < 0:
            return found > 1
        found += body.startswith(MODEL, at)
    return found + body.count(MODEL, at + 1) > 1


def _members(body: Body) -> Iterator[tuple[str, int]]:
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
