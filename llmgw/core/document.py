"""JSON that others wrote: every look-up says None where the shape is another than hoped for."""

from __future__ import annotations

import json
from typing import NamedTuple

import orjson

BOM: bytes = b"\xef\xbb\xbf"  # some servers begin with it, and clients skip it (RFC 8259, 8.1)


def parse(data: bytes) -> object:
    """The value, or None where `data` is no JSON (or is `null`).

    orjson refuses what servers do send: half a surrogate pair, `NaN`, broken UTF-8, a BOM. None
    of these is a reason to miss an event, so the standard library is asked second.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_leniently(data)


def dump(value: object) -> bytes:
    """Compact JSON of whatever was parsed; half a surrogate pair, which orjson cannot write,
    becomes an escape."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return dump_as_read(value)


def dump_as_read(value: object) -> bytes:
    """The same in ASCII, with the numbers that JSON lacks as they came."""
    try:
        return _text(value).encode()
    except RecursionError:
        return "".join(_deep(value)).encode()


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
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


class _Mark(NamedTuple):
    """What stands between values."""

    text: str


def _deep(value: object) -> list[str]:
    """JSON of a value nested deeper than the encoders, which recurse, may go."""
    parts: list[str] = []
    rest: list[object] = [value]
    while rest:
        match rest.pop():
            case _Mark(text):
                parts.append(text)
            case dict() as members if members:
                named = [(f"{_text(name)}:", member) for name, member in members.items()]
                rest += _reversed("{", named, "}")
            case list() as items if items:
                rest += _reversed("[", [("", item) for item in items], "]")
            case scalar:
                parts.append(_text(scalar))
    return parts


def _reversed(opening: str, members: list[tuple[str, object]], closing: str) -> list[object]:
    """The first is the last, which is popped first."""
    marked: list[object] = [_Mark(closing)]
    for at in range(len(members) - 1, -1, -1):
        name, member = members[at]
        marked += (member, _Mark(("," if at else opening) + name))
    return marked


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
