"""The JSON object that a request's body is: refused where it is none, and not made where a look
at it will do.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson

from llmgw.core.errors import InvalidRequest
from llmgw.core.members import LARGE
from llmgw.core.types import Body

MAX_DEPTH = 1000
NEEDED = frozenset(
    {"input", "model", "previous_response_id", "prompt_cache_key", "store", "stream"}
)
_shallow = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def parse_object(body: Body) -> dict[str, Any]:
    """Of a large body only the members that are `NEEDED`; the others are there as None."""
    if len(body) > LARGE and (found := _look_at(body)) is not None:
        return found
    return parse_whole(body)


def parse_whole(body: Body) -> dict[str, Any]:
    """With all of its members, for whoever writes it anew."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _second_opinion(body)
    if not isinstance(document, dict):
        raise InvalidRequest("the request body must be a JSON object")
    if len(body) > MAX_DEPTH and (
        _has_more(body, b"{", MAX_DEPTH // 2) or _has_more(body, b"[", MAX_DEPTH // 2)
    ):
        _refuse_depth(document)
    return document


def _look_at(body: Body) -> dict[str, Any] | None:
    """A large object without making its values: they are skipped, checked as they are passed.

    None where it is not plainly one; that it is nested too deep, too, is for others to say.
    """
    try:
        members = _shallow(body)
        if not body.isascii():
            body.decode()  # in what is skipped the encoding is not looked at
        has_files = "input" in members and b"file_id" in body
        needed = NEEDED if has_files else NEEDED - {"input"}
        return {
            name: orjson.loads(memoryview(value)) if name in needed else None
            for name, value in members.items()
        }
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _second_opinion(body: Body) -> Any:
    """Half a surrogate pair as an escape, which clients cut text to, is legal JSON (RFC 8259,
    section 8.2), though orjson refuses it: the upstream is to judge.
    """
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant, parse_int=float)
    except (ValueError, RecursionError):
        pass
    # not in there: the parser's error holds the body, and would be the context of this one
    raise InvalidRequest("the request body is not valid JSON in UTF-8")


def _has_more(body: Body, sign: bytes, count: int) -> bool:
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
