"""Response heads as servers send them again and again, read line by line from memory.

Only the plainest lines are taken: whatever else there is, None says that a parser has to look.
"""

from __future__ import annotations

import re
from functools import lru_cache

from llmgw.core.types import Headers

LONGEST_LINE = 256  # of those that are worth keeping
MOST_FIELDS = 64
LENGTH_DIGITS = 15

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([2-5][0-9]{2}) [\t -~]*")
_FIELD_LINE = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}):[ \t]*([!-~](?:[\t -~]*[!-~])?)[ \t]*"
)


def familiar_head(head: bytes) -> tuple[int, Headers] | None:
    """Status and fields of a final HTTP/1.1 head, given whole without its last line ends."""
    first, *lines = head.split(b"\r\n")
    status = _status(first) if len(first) <= LONGEST_LINE else None
    if status is None or len(lines) > MOST_FIELDS:
        return None
    fields = []
    for line in lines:
        field = _field(line) if len(line) <= LONGEST_LINE else None
        if field is None:
            return None
        fields.append(field)
    return status, tuple(fields)


@lru_cache(maxsize=64)
def _status(line: bytes) -> int | None:
    found = _STATUS_LINE.fullmatch(line)
    return int(found[1]) if found else None


@lru_cache(maxsize=2048)
def _field(line: bytes) -> tuple[str, str] | None:
    found = _FIELD_LINE.fullmatch(line)
    if found is None:
        return None
    name, value = found[1].decode().lower(), found[2].decode()
    is_odd = name == "upgrade" or (name == "content-length" and len(value) > LENGTH_DIGITS)
    return None if is_odd else (name, value)
