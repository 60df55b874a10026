"""Response heads as servers send them again and again, read from memory as a whole.

Only the plainest heads are taken: whatever else there is, None says that a parser has to look.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from llmgw.core.fields import LONGEST_LINE, plain_fields
from llmgw.core.types import Headers

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([2-5][0-9]{2}) [\t -~]*")
_FRAMING = frozenset(("connection", "transfer-encoding", "upgrade"))
_USUAL = {
    "connection": frozenset(("keep-alive", "Keep-Alive")),
    "transfer-encoding": frozenset(("chunked",)),
}


class Familiar(NamedTuple):
    """A final HTTP/1.1 head, but for its length; the connection stays open after its body."""

    status: int
    headers: Headers
    chunked: bool


@lru_cache(maxsize=1024)
def familiar(head: bytes) -> Familiar | None:
    """Given whole, without the line of its length and without its last line end."""
    first, *lines = head.split(b"\r\n")
    status = _STATUS_LINE.fullmatch(first) if len(first) <= LONGEST_LINE else None
    headers = plain_fields(lines)
    if status is None or headers is None:
        return None
    framing = [line for line in headers if line[0] in _FRAMING]
    if any(value not in _USUAL.get(name, ()) for name, value in framing):
        return None
    codings = sum(name == "transfer-encoding" for name, _ in framing)
    return Familiar(int(status[1]), headers, codings == 1) if codings < 2 else None
