"""Requests and their attempts, as rows: metadata only."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.settle import AttemptRow, RequestRow, Scope, Settlement
from llmgw.store.identity import storable
from llmgw.store.rows import Row, RowKind, Value
from llmgw.store.writer import Writer

MAX_TOKENS = 2**40  # an upstream may say anything; sums must fit in 63 bits


@dataclass(frozen=True, slots=True)
class Client:
    """Whose key it was, as people know it."""

    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


ANYBODY = Client()


class Requests:
    """Hands requests to the writer, which batches them off the request path."""

    def __init__(self, writer: Writer, *, instance: str) -> None:
        self._writer = writer
        self._instance = instance

    def record(self, settlement: Settlement, client: Client = ANYBODY) -> None:
        """The final row and its attempts; it replaces the open one."""
        attempts = settlement.attempts
        last = attempts[-1].assignment if attempts else None
        request = _request_values(settlement.request, client, self._instance, last)
        self._writer.record(
            (
                Row(RowKind.REQUEST, request),
                *(Row(RowKind.ATTEMPT, _attempt_values(one)) for one in attempts),
            )
        )

    def record_open(self, scope: Scope, *, started: float, client: Client = ANYBODY) -> None:
        """The request still runs: if this gateway dies, another one closes the row."""
        values = _open_values(scope, started, client, self._instance)
        self._writer.record((Row(RowKind.OPEN, values),))


def join_labels(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels))


def _request_values(
    row: RequestRow, client: Client, instance: str, assignment: str | None
) -> tuple[Value, ...]:
    return (
        row.request_id,
        instance,
        row.pool,
        row.key,
        client.name,
        join_labels(client.labels),
        storable(row.model),
        str(row.lane),
        row.route,
        row.stream,
        assignment,
        str(row.outcome),
        row.status,
        row.retry_count,
        row.started,
        row.ended,
        _count(row.usage.tokens_in),
        _count(row.usage.tokens_out),
        _count(row.usage.tokens_cached),
        None,
    )


def _open_values(scope: Scope, started: float, client: Client, instance: str) -> tuple[Value, ...]:
    request = (
        scope.request_id,
        instance,
        scope.pool,
        scope.key,
        client.name,
        join_labels(client.labels),
        storable(scope.model),
        str(scope.lane),
        scope.route,
        scope.stream,
    )
    unknown = (None, None, None)
    return (*request, *unknown, 0, started, None, *unknown, None)


def _attempt_values(row: AttemptRow) -> tuple[Value, ...]:
    return (
        row.request_id,
        row.ordinal,
        row.assignment,
        str(row.outcome),
        None if row.reason is None else storable(row.reason),
        row.status,
        row.started,
        row.ended,
    )


def _count(tokens: int | None) -> int | None:
    """More than a request can have is no count."""
    return tokens if tokens is not None and tokens <= MAX_TOKENS else None
