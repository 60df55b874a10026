"""A request by express, with a client that remembers what it was told."""

from __future__ import annotations

import asyncio

from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId
from llmgw.core.wire import Call
from llmgw.runtime.asked import Sent
from llmgw.runtime.ports import Client
from tests.builders import principal
from tests.fakes.downstream import FakeDownstream


class FakeAsked:
    """Satisfies `llmgw.runtime.asked.Asked`."""

    def __init__(
        self,
        call: Call,
        who: Principal | None = None,
        memo: dict[AssignmentId, Sent] | None = None,
        *,
        varying: tuple[int, ...] = (),
        values: tuple[bytes, ...] = (),
    ) -> None:
        self.call = call
        self.principal = who or principal()
        self.client = Client(self.principal.name, self.principal.labels)
        self.downstream = Lines()
        self.memo = {} if memo is None else memo
        self.varying, self.values = varying, values
        self.ended = asyncio.Event()
        self.handed_over = asyncio.Event()

    def over(self) -> None:
        assert not self.ended.is_set(), "told once"
        self.ended.set()

    def hand_over(self) -> None:
        assert not self.handed_over.is_set(), "told once"
        self.handed_over.set()


class Lines(FakeDownstream):
    """Takes header lines as bytes as well."""

    def commit(self, status, headers) -> None:
        if isinstance(headers, bytes):
            lines = headers.decode("latin-1").split("\r\n")[:-1]
            headers = tuple(tuple(line.split(": ", 1)) for line in lines)
        super().commit(status, headers)
