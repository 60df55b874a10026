"""Who used what, and what happened lately: sums and lists, in a constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, case, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from llmgw.core.failover import Outcome
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.core.usage import Usage
from llmgw.store.reader import Reader
from llmgw.store.schema import ATTEMPTS, REQUESTS

RECENT_WINDOW = 300.0
MAX_RECENT = 500


class GroupBy(StrEnum):
    KEY = "key"
    LABEL = "label"
    MODEL = "model"
    ASSIGNMENT = "assignment"


@dataclass(frozen=True, slots=True)
class UsageLine:
    """Sums of one group; `group` is None for what has no such thing (open access, no label).

    Tokens are of those requests of which the upstream told them.
    """

    group: str | None
    requests: int
    succeeded: int
    failed: int
    handoffs: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int

    def __add__(self, more: UsageLine) -> UsageLine:
        return UsageLine(
            self.group,
            self.requests + more.requests,
            self.succeeded + more.succeeded,
            self.failed + more.failed,
            self.handoffs + more.handoffs,
            self.tokens_in + more.tokens_in,
            self.tokens_out + more.tokens_out,
            self.tokens_cached + more.tokens_cached,
        )


@dataclass(frozen=True, slots=True)
class PastAttempt:
    ordinal: int
    assignment: AssignmentId
    outcome: Outcome
    reason: str | None
    status: int | None
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class PastRequest:
    """`outcome` and `ended` are None while it runs; its attempts come with its end."""

    request_id: str
    pool: PoolName
    key: KeyId | None
    key_name: str | None
    model: str
    lane: RouteClass
    route: str
    stream: bool
    outcome: Outcome | None
    status: int | None
    retry_count: int
    started: float
    ended: float | None
    usage: Usage
    attempts: tuple[PastAttempt, ...] = ()


class UsageBook:
    """Reads what requests have left. `pools` None: all of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def sums(
        self,
        by: GroupBy,
        *,
        since: float,
        until: float,
        pools: Collection[PoolName] | None = None,
    ) -> tuple[UsageLine, ...]:
        """The biggest group first. One query."""
        query = _sums(_GROUPS[by]).where(*_within(pools, since, until))
        lines = [line for _, line in await self._lines(query)]
        if by is GroupBy.LABEL:
            lines = _split_labels(lines)
        return tuple(sorted(lines, key=lambda line: (-line.requests, line.group or "")))

    async def sums_of_models(
        self,
        by: GroupBy,
        *,
        since: float,
        until: float,
        pools: Collection[PoolName] | None = None,
    ) -> tuple[tuple[str, UsageLine], ...]:
        """The same apart for each model, which has its price. One query."""
        query = _sums(_GROUPS[by], model=REQUESTS.c.model).group_by(REQUESTS.c.model)
        lines = await self._lines(query.where(*_within(pools, since, until)))
        if by is not GroupBy.LABEL:
            return tuple(lines)
        models = dict.fromkeys(model for model, _ in lines)
        return tuple(
            (model, line)
            for model in models
            for line in _split_labels([line for one, line in lines if one == model])
        )

    async def lately_by_model(
        self, *, now: float, pools: Collection[PoolName] | None = None
    ) -> tuple[UsageLine, ...]:
        """Of the last five minutes."""
        return await self.sums(GroupBy.MODEL, since=now - RECENT_WINDOW, until=now, pools=pools)

    async def recent(
        self, *, pools: Collection[PoolName] | None = None, limit: int = 50
    ) -> tuple[PastRequest, ...]:
        """The last requests, the newest first, with their attempts. Two queries."""
        latest = select(REQUESTS).where(*_within(pools)).order_by(REQUESTS.c.started_at.desc())

        async def read(connection: AsyncConnection) -> tuple[PastRequest, ...]:
            requests = (await connection.execute(latest.limit(min(limit, MAX_RECENT)))).all()
            attempts = await _attempts_of(connection, [row.id for row in requests])
            return tuple(
                replace(_request_of(row), attempts=tuple(attempts[row.id])) for row in requests
            )

        return await self._reader.read(read)

    async def _lines(self, query: Select[Any]) -> list[tuple[str, UsageLine]]:
        async def read(connection: AsyncConnection) -> list[tuple[str, UsageLine]]:
            rows = await connection.execute(query)
            return [(row.model, _line_of(row)) for row in rows]

        return await self._reader.read(read)


_ANY_MODEL: ColumnElement[Any] = literal("")
_GROUPS: dict[GroupBy, ColumnElement[Any]] = {
    GroupBy.KEY: func.coalesce(REQUESTS.c.key_name, REQUESTS.c.key_id),
    GroupBy.LABEL: REQUESTS.c.labels,
    GroupBy.MODEL: REQUESTS.c.model,
    GroupBy.ASSIGNMENT: REQUESTS.c.assignment,
}


def _sums(group: ColumnElement[Any], *, model: ColumnElement[Any] = _ANY_MODEL) -> Select[Any]:
    return select(
        model.label("model"),
        group.label("name"),
        func.count().label("requests"),
        _number_of(Outcome.SUCCEEDED).label("succeeded"),
        _number_of(Outcome.FAILED).label("failed"),
        func.sum(REQUESTS.c.retry_count).label("handoffs"),
        func.coalesce(func.sum(REQUESTS.c.tokens_in), 0).label("tokens_in"),
        func.coalesce(func.sum(REQUESTS.c.tokens_out), 0).label("tokens_out"),
        func.coalesce(func.sum(REQUESTS.c.tokens_cached), 0).label("tokens_cached"),
    ).group_by(group)


def _number_of(outcome: Outcome) -> ColumnElement[int]:
    return func.sum(case((REQUESTS.c.outcome == str(outcome), 1), else_=0))


def _within(
    pools: Collection[PoolName] | None, since: float | None = None, until: float | None = None
) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if pools is not None:
        found.append(REQUESTS.c.pool.in_(sorted(pools)))
    if since is not None:
        found.append(REQUESTS.c.started_at >= since)
    if until is not None:
        found.append(REQUESTS.c.started_at < until)
    return found


def _line_of(row: Row[Any]) -> UsageLine:
    """PostgreSQL sums integers to decimals."""
    counts: tuple[int, ...] = tuple(map(int, row[2:]))
    return UsageLine(row.name, *counts)


def _split_labels(lines: Sequence[UsageLine]) -> list[UsageLine]:
    """A request counts for each label of its key."""
    found: dict[str | None, UsageLine] = {}
    for line in lines:
        for label in (line.group or "").split(","):
            name = label or None
            own = replace(line, group=name)
            found[name] = found[name] + own if name in found else own
    return list(found.values())


async def _attempts_of(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, list[PastAttempt]]:
    query = select(ATTEMPTS).where(ATTEMPTS.c.request_id.in_(ids)).order_by(ATTEMPTS.c.ordinal)
    found: dict[str, list[PastAttempt]] = defaultdict(list)
    for row in await connection.execute(query):
        found[row.request_id].append(
            PastAttempt(
                row.ordinal,
                AssignmentId(row.assignment),
                Outcome(row.outcome),
                row.reason,
                row.status,
                row.started_at,
                row.ended_at,
            )
        )
    return found


def _request_of(row: Row[Any]) -> PastRequest:
    return PastRequest(
        request_id=row.id,
        pool=PoolName(row.pool),
        key=None if row.key_id is None else KeyId(row.key_id),
        key_name=row.key_name,
        model=row.model,
        lane=RouteClass(row.route_class),
        route=row.route,
        stream=row.stream,
        outcome=None if row.outcome is None else Outcome(row.outcome),
        status=row.status,
        retry_count=row.retry_count,
        started=row.started_at,
        ended=row.ended_at,
        usage=Usage(row.tokens_in, row.tokens_out, row.tokens_cached),
    )
