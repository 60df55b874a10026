"""Heads of messages as peers send them again and again: plain lines, read from memory.

Only the plainest are taken (RFC 9112, section 5; RFC 9110, section 5.5, without what is
obsolete): whatever else there is, None says that a parser has to look.
"""

from __future__ import annotations

import re
from functools import lru_cache

from llmgw.core.types import Headers

END = b"\r\n\r\n"  # of a head
LENGTH = "content-length"
LONGEST_LINE = 512  # bytes of a line that is worth keeping
MOST_FIELDS = 64

_FIELD_LINE = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}):[ \t]*([!-~](?:[\t -~]*[!-~])?)[ \t]*"
)
_LENGTH_LINE = re.compile(rb"\r\n[Cc]ontent-[Ll]ength:[ \t]*([0-9]{1,15})[ \t]*(?=\r\n)")


def sized(data: bytes, end: int) -> tuple[bytes, int | None]:
    """The head whose `END` begins at `end`, without the line of its length, in which most heads
    differ from the one before; and that length, None where no plain line tells it. The line end
    before `END` is left out.
    """
    found = _LENGTH_LINE.search(data, 0, end + 2)
    if found is None:
        return data[:end], None
    start, stop = found.span()
    return data[:start] + data[stop:end], int(found[1])


def plain_fields(lines: list[bytes]) -> Headers | None:
    """The header lines, all of them plain; a length that is still among them is not."""
    if len(lines) > MOST_FIELDS:
        return None
    fields = []
    for line in lines:
        field = _field(line) if len(line) <= LONGEST_LINE else None
        if field is None or field[0] == LENGTH:
            return None
        fields.append(field)
    return tuple(fields)


@lru_cache(maxsize=2048)
def _field(line: bytes) -> tuple[str, str] | None:
    """Name, in lower case, and value."""
    found = _FIELD_LINE.fullmatch(line)
    return (found[1].decode().lower(), found[2].decode()) if found else None
