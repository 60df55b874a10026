"""What one websocket has said so far, for upstreams that keep no responses.

A turn may carry only what is new and name the response before it. Where nobody else knows that
response, the turn is sent with all that led up to it. In memory only, gone with the socket.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from llmgw.core import document

ENTRY_BYTES = 512  # what an entry costs beside its items


@dataclass(frozen=True, slots=True)
class Lead:
    """What led up to a response: JSON items, joined by commas, and the response before them
    that is not known here, if there is one."""

    items: bytes
    base: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    parent: str | None
    items: bytes

    @property
    def size(self) -> int:
        return len(self.items) + ENTRY_BYTES


class Transcript:
    """Turns by the id of their response; the oldest make room when it grows over its bound."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._entries

    def add(
        self, response_id: str, *, parent: str | None, input: object, output: object = ()
    ) -> None:
        """Remember a turn: `input` as the client gave it, `output` the response's items."""
        entry = _Entry(parent, joined(items_of(input), items_of(output)))
        if entry.size > self._limit:
            return
        self._forget(response_id)
        self._entries[response_id] = entry
        self._size += entry.size
        while self._size > self._limit:
            self._forget(next(iter(self._entries)))

    def lead(self, response_id: str) -> Lead:
        """All that is known of what led up to this response, itself included."""
        parts: list[bytes] = []
        at: str | None = response_id
        seen: set[str] = set()
        while at is not None and at not in seen and (entry := self._entries.get(at)):
            seen.add(at)
            parts.append(entry.items)
            at = entry.parent
        return Lead(joined(*reversed(parts)), at)

    def _forget(self, response_id: str) -> None:
        entry = self._entries.pop(response_id, None)
        if entry is not None:
            self._size -= entry.size


def items_of(value: object) -> bytes:
    """The items of an `input` or `output` as JSON, joined by commas; a text is one message."""
    if isinstance(value, str):
        value = [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        return b""
    return document.dump(value)[1:-1].strip()


def joined(*parts: bytes) -> bytes:
    return b",".join(filter(None, parts))
