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

OWN_LINE = b"\r\nx-request-id: "  # as `core/headers` has it; a client's line is not passed on
OWN_ID = MOST_VARYING  # the slot of the request's id, behind those of the values that vary
MARKS = "\x01\x02\x03\x04\x05\x06\x07\x08"  # one for each slot: no plain line holds them
_MARK = re.compile(b"([\x01-\x08])")


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
        pieces = [self.parts[0]]
        for place, slot in enumerate(self.slots, 1):
            pieces.append(request_id.encode() if slot == OWN_ID else values[slot])
            pieces.append(self.parts[place])
        pieces.append(b"\r\ncontent-length: %d\r\n\r\n" % length)
        return b"".join(pieces)


def marked(call: Call, varying: tuple[int, ...]) -> Call:
    """With marks in place of the values of these header lines, so that `sent_to` finds them.

    Raises `ValueError` where a header holds one already.
    """
    headers = list(call.headers)
    if not set(MARKS).isdisjoint("".join([value for _, value in headers])):
        raise ValueError("a header value holds a control character")
    for slot, at in enumerate(varying):
        headers[at] = (headers[at][0], MARKS[slot])
    return call._replace(headers=tuple(headers))


def sent_to(upstream: Upstream, call: Call, head: bytes) -> Sent:
    """`head` was rendered from the call, or from what is `marked`; then what is not passed on has
    no slot. The request's id is looked for in its own line only: a client may say it in another.

    Raises `ValueError` where the length does not stand at the end.
    """
    rest = head.removesuffix(b"\r\ncontent-length: %d\r\n\r\n" % len(call.body))
    if len(rest) == len(head):
        raise ValueError("a head that does not end with its length")
    before, line, behind = rest.partition(OWN_LINE + call.request_id.encode())
    parts = [before + OWN_LINE, behind] if line else [rest]
    return Sent(upstream, parts)


def sent_with_slots(sent: Sent) -> Sent:
    """What was rendered of a call that is `marked`, cut at the marks."""
    pieces = _MARK.split(MARKS[OWN_ID].encode().join(sent.parts))
    slots = tuple([MARKS.index(mark.decode()) for mark in pieces[1::2]])
    return sent if set(slots) <= {OWN_ID} else sent._replace(parts=pieces[::2], slots=slots)


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
