"""JSON that others wrote: every look-up says None where the shape is another than hoped for."""

from __future__ import annotations

import json

import orjson


def parse(data: bytes) -> object:
    """The value, or None where `data` is no JSON (or is `null`).

    orjson refuses what servers do send: half a surrogate pair, `NaN`, broken UTF-8. None of
    these is a reason to miss an event, so the standard library is asked second.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_leniently(data)


def dump(value: object) -> bytes:
    """Compact JSON; half a surrogate pair, which orjson cannot write, becomes an escape."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def is_json(data: bytes) -> bool:
    return data.strip() == b"null" or parse(data) is not None


def member(document: object, *path: str) -> object:
    """The value that lies at the end of `path`, through objects only."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def text(document: object, *path: str) -> str | None:
    value = member(document, *path)
    return value if isinstance(value, str) else None


def count(document: object, *path: str) -> int | None:
    """A number of things: an integer that is no bool and not negative."""
    value = member(document, *path)
    return value if type(value) is int and value >= 0 else None


def _parse_leniently(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
