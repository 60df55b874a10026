"""A request with whoever waits for its answer, and what is remembered of those with its head."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from llmgw.core.config import Upstream
from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId
from llmgw.core.varying import MOST_VARYING
from llmgw.core.wire import Call
from llmgw.runtime.ports import Client, LineDownstream

OWN_ID = MOST_VARYING  # the slot of the request's id, behind those of the values that vary
_MARK = re.compile("[\x01-\x08]")  # stands for them while a head is rendered: no plain line has it
_SLOT = re.compile(b"([\x01-\x08])")


class Sent(NamedTuple):
    """The head of a request as an upstream got it, without what is each request's own."""

    upstream: Upstream
    parts: list[bytes]  # the request's id stands between them, or what `slots` says
    slots: tuple[int, ...] = ()

    def head(self, request_id: str, length: int) -> bytes:
        """Where there are no slots."""
        rest = request_id.encode().join(self.parts)
        return b"%b\r\ncontent-length: %d\r\n\r\n" % (rest, length)

    def filled(self, request_id: str, length: int, values: tuple[bytes, ...]) -> bytes:
        """`values`: of the lines that vary, those that are not passed on among them."""
        parts = self.parts
        pieces = [parts[0]]
        for place, slot in enumerate(self.slots, 1):
            pieces.append(request_id.encode() if slot == OWN_ID else values[slot])
            pieces.append(parts[place])
        pieces.append(b"\r\ncontent-length: %d\r\n\r\n" % length)
        return b"".join(pieces)


def marked(call: Call, varying: tuple[int, ...]) -> Call:
    """With marks in place of its id and of the values of these header lines.

    Raises `ValueError` where one stands there already.
    """
    headers = list(call.headers)
    for slot, at in enumerate(varying):
        headers[at] = (headers[at][0], chr(slot + 1))
    for at, (_, value) in enumerate(call.headers):
        if _MARK.search(value) and at not in varying:
            raise ValueError("a header value holds a control character")
    return call._replace(headers=tuple(headers), request_id=chr(OWN_ID + 1))


def sent_to(upstream: Upstream, head: bytes) -> Sent:
    """`head` was rendered from a call that is `marked`; what is not passed on has no slot."""
    pieces = _SLOT.split(head)
    slots = tuple([mark[0] - 1 for mark in pieces[1::2]])
    return Sent(upstream, pieces[::2], () if set(slots) <= {OWN_ID} else slots)


class Asked(Protocol):
    """A request, and who waits for its answer."""

    @property
    def call(self) -> Call: ...

    @property
    def principal(self) -> Principal: ...

    @property
    def client(self) -> Client: ...

    @property
    def downstream(self) -> LineDownstream: ...

    @property
    def memo(self) -> dict[AssignmentId, Sent]:
        """Of requests that had the same head, but for the lines that vary."""

    @property
    def varying(self) -> tuple[int, ...]:
        """Which of the call's headers vary between them, in order."""

    @property
    def values(self) -> tuple[bytes, ...]:
        """Of these, this request's own."""

    def over(self) -> None:
        """The answer is out, as far as it goes."""

    def hand_over(self) -> None:
        """See to it that `ExpressCall.go_on` is awaited, or `leave` called."""
