"""Requests and their attempts, handed to the writer."""

from __future__ import annotations

from llmgw.core.settle import Scope, Settlement
from llmgw.store.settled import ANYBODY as ANYBODY
from llmgw.store.settled import Client as Client
from llmgw.store.settled import open_row
from llmgw.store.writer import Writer


class Requests:
    """Hands requests to the writer, which batches them off the request path."""

    def __init__(self, writer: Writer, *, instance: str) -> None:
        self._writer = writer
        self._instance = instance

    def record(self, settlement: Settlement, client: Client = ANYBODY) -> None:
        """The final row and its attempts; it replaces the open one. Nothing is converted here."""
        self._writer.record_settled(
            (settlement.request, settlement.attempts, client, self._instance)
        )

    def record_open(self, scope: Scope, *, started: float, client: Client = ANYBODY) -> None:
        """The request still runs: if this gateway dies, another one closes the row."""
        self._writer.record((open_row(scope, client, self._instance, started=started),))
