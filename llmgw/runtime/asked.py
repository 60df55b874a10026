"""A request with whoever waits for its answer, and what is remembered of those with its head."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from llmgw.core.config import Upstream
from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId
from llmgw.core.wire import Call
from llmgw.runtime.ports import Client, LineDownstream


class Sent(NamedTuple):
    """The head of a request as an upstream got it, without what is each request's own."""

    upstream: Upstream
    parts: list[bytes]  # the request's id stands between them

    def head(self, request_id: str, length: int) -> bytes:
        rest = request_id.encode().join(self.parts)
        return b"%b\r\ncontent-length: %d\r\n\r\n" % (rest, length)


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
        """Of requests that had the same head."""

    def over(self) -> None:
        """The answer is out, as far as it goes."""

    def hand_over(self) -> None:
        """See to it that `ExpressCall.go_on` is awaited, or `leave` called."""
