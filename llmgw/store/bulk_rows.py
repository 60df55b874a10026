"""Settled requests as values for statements of many rows, and those statements.

A row is an id, times, token counts and the number of its shared part: all that it has in common
with others, in a temporary table of the connection's. The join is an outer one: a part that was
not there would break a NOT NULL and be told, not lose a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from llmgw.store.identity import storable
from llmgw.store.inserts import insert_from
from llmgw.store.rows import Row, RowKind, Value
from llmgw.store.settled import (
    MAX_TOKENS,
    Settled,
    attempt_row,
    join_labels,
    rows_of,
)

SHARED = (
    *("instance", "key_name", "labels"),
    *("pool", "key_id", "model", "route_class", "route", "stream"),
    *("outcome", "status", "retry_count"),
    *("ordinal", "assignment", "last_outcome", "reason", "last_status"),  # of the last attempt
)
Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What a row binds, and what is selected from that and its shared part."""

    kind: RowKind
    width: int  # column1 is the id, column2 the number of the shared part
    columns: str


REQUEST = Target(
    RowKind.REQUEST,
    7,
    "column1, instance, pool, key_id, key_name, labels, model, route_class, route, stream,"
    " assignment, outcome, status, retry_count, column3, column4, column5, column6, column7, NULL",
)
LAST_ATTEMPT = Target(
    RowKind.ATTEMPT,
    4,
    "column1, ordinal, assignment, last_outcome, reason, last_status, column3, column4",
)


@dataclass(slots=True)
class BulkRows:
    """A batch: values one after another, as a statement of many rows binds them."""

    requests: list[Value] = field(default_factory=list)
    last_attempts: list[Value] = field(default_factory=list)
    others: list[Row] = field(default_factory=list)  # few: attempts that were handed on


class Shared:
    """Numbers for what requests have in common."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._new: list[Values] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def take_new(self) -> list[Values]:
        """What has got a number since this was last asked."""
        new, self._new = self._new, []
        return new

    def bulk_rows(self, batch: Iterable[Settled]) -> BulkRows:
        """Each step of the loop is paid by each request, so what it is like is told by slices."""
        bulk = BulkRows()
        for settled in batch:
            request, attempts, client, instance = settled
            if not attempts:
                bulk.others += rows_of(settled)
                continue
            request_id, last = request.request_id, attempts[-1]
            # from the pool to the handoffs, from the ordinal to the status
            key = (instance, client.name, client.labels, request[1:10], last[1:6])
            number = self._numbers.get(key) or self._add(key, settled)
            tokens_in, tokens_out, tokens_cached = request.usage
            bulk.requests += (
                request_id,
                number,
                request.started,
                request.ended,
                tokens_in if tokens_in is None or tokens_in <= MAX_TOKENS else None,
                tokens_out if tokens_out is None or tokens_out <= MAX_TOKENS else None,
                tokens_cached if tokens_cached is None or tokens_cached <= MAX_TOKENS else None,
            )
            bulk.last_attempts += (request_id, number, last.started, last.ended)
            if len(attempts) > 1:
                bulk.others += map(attempt_row, attempts[:-1])
        return bulk

    def _add(self, key: object, settled: Settled) -> int:
        number = self._numbers[key] = len(self._numbers) + 1
        self._new.append((number, *_shared(settled)))
        return number


@cache
def statement(target: Target, rows: int) -> str:
    value = f"({', '.join('?' * target.width)})"
    return insert_from(
        target.kind,
        f"SELECT {target.columns} FROM (VALUES {', '.join([value] * rows)})"  # noqa: S608
        " LEFT JOIN temp.shared ON number = column2 WHERE true",
    )


def _shared(settled: Settled) -> Values:
    request, attempts, client, instance = settled
    return (
        *(instance, client.name, join_labels(client.labels)),
        *(request.pool, request.key, storable(request.model)),
        *(str(request.lane), request.route, request.stream),
        *(str(request.outcome), request.status, request.retry_count),
        *attempt_row(attempts[-1]).values[1:6],
    )
