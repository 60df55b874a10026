"""A settled request on its way to the database: kept as it came, made into rows with its batch.

Rows are metadata only. They are the general form, which a spool can keep and any database takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from llmgw.core.settle import AttemptRow, RequestRow, Scope
from llmgw.store.identity import storable
from llmgw.store.rows import Row, RowKind, Value

MAX_TOKENS = 2**40  # an upstream may say anything; sums must fit in 63 bits


@dataclass(frozen=True, slots=True)
class Client:
    """Whose key it was, as people know it."""

    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


ANYBODY = Client()

Settled = tuple[RequestRow, tuple[AttemptRow, ...], Client, str]
"""The string is the instance that served it. A bare tuple, since one is made for every request;
and what else a settlement holds is let go of, or the garbage collector would go through it."""


def rows_of(settled: Settled) -> tuple[Row, ...]:
    """The final row, which replaces an open one, and the attempts'."""
    request, attempts, client, instance = settled
    last = attempts[-1].assignment if attempts else None
    return (
        Row(RowKind.REQUEST, _request_values(request, client, instance, last)),
        *map(attempt_row, attempts),
    )


def open_row(scope: Scope, client: Client, instance: str, *, started: float) -> Row:
    """Of a request that still runs."""
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
    return Row(RowKind.OPEN, (*request, *unknown, 0, started, None, *unknown, None))


@lru_cache(maxsize=1024)
def join_labels(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels))


def attempt_row(row: AttemptRow) -> Row:
    values = (
        row.request_id,
        row.ordinal,
        row.assignment,
        str(row.outcome),
        None if row.reason is None else storable(row.reason),
        row.status,
        row.started,
        row.ended,
    )
    return Row(RowKind.ATTEMPT, values)


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


def _count(tokens: int | None) -> int | None:
    """More than a request can have is no count."""
    return tokens if tokens is not None and tokens <= MAX_TOKENS else None
