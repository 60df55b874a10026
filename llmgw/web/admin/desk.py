"""Everything a page shows, fetched for some pools: two readings of memory, and few queries.

The number of queries depends on the page alone, not on how many assignments or models there are,
nor on how many operators look: what was read is shown to all who look within a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from llmgw.core.admin_usage import ModelUsage, UsageCount, with_shares
from llmgw.core.admin_view import Look
from llmgw.core.config import Pool
from llmgw.core.types import PoolName
from llmgw.runtime.observed import Past
from llmgw.store.errors import StoreError
from llmgw.store.usage import PastAttempt, PastRequest, UsageLine
from llmgw.web.admin.ports import Book, Gateway, Spawn

FRESH: Final = 1.5  # seconds
QUERY_WITHIN: Final = 3.0
MOST_REQUESTS: Final = 100

T = TypeVar("T")
Pools = tuple[Pool, ...]


class Source(StrEnum):
    DATABASE = "database"  # all gateways
    MEMORY = "memory"  # this one, since it began


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was read, and where: without a database a gateway knows its own requests only."""

    source: Source
    rows: tuple[T, ...]


class Desk:
    """Reads for the pages; asks no upstream anything."""

    def __init__(
        self,
        gateway: Gateway,
        book: Book | None,
        spawn: Spawn,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gateway = gateway
        self._book = book
        self._spawn = spawn
        self._wall = wall
        self._clock = clock
        self._usage: _Kept[Found[ModelUsage]] = _Kept(clock)
        self._requests: _Kept[Found[PastRequest]] = _Kept(clock)

    def look(self, pools: Pools) -> Look:
        gateway = self._gateway
        return Look(
            config=gateway.config,
            fleet=gateway.registry.fleet(),
            circuits=gateway.board.view(),
            seen=gateway.observed.sightings(_names(pools)),
            now=self._wall(),
            ticks=self._clock(),
            draining=gateway.board.draining(),
        )

    async def usage(self, pools: Pools) -> Found[ModelUsage]:
        """By model, of the last five minutes; the shares are of these pools' requests."""
        names = _names(pools)
        return await self._usage.get(names, lambda: self._fetch_usage(names))

    async def requests(self, pools: Pools) -> Found[PastRequest]:
        names = _names(pools)
        return await self._requests.get(names, lambda: self._fetch_requests(names))

    async def _fetch_usage(self, names: frozenset[PoolName]) -> Found[ModelUsage]:
        async def ask(book: Book) -> tuple[UsageLine, ...]:
            return await book.lately_by_model(now=self._wall(), pools=names)

        lines = await self._ask("admin usage", ask)
        if lines is None:
            return Found(Source.MEMORY, with_shares(self._gateway.observed.usage(names)))
        return Found(Source.DATABASE, with_shares(_counts(lines)))

    async def _fetch_requests(self, names: frozenset[PoolName]) -> Found[PastRequest]:
        async def ask(book: Book) -> tuple[PastRequest, ...]:
            return await book.recent(pools=names, limit=MOST_REQUESTS)

        rows = await self._ask("admin requests", ask)
        if rows is None:
            past = self._gateway.observed.requests(names, MOST_REQUESTS)
            return Found(Source.MEMORY, tuple(_as_past_request(one) for one in past))
        return Found(Source.DATABASE, rows)

    async def _ask(self, name: str, ask: Callable[[Book], Awaitable[T]]) -> T | None:
        """None: the database does not answer, or not soon. A client that leaves, or waits no
        longer, leaves a query behind that ends by itself."""
        if self._book is None:
            return None
        task = self._spawn(name, _unless_away(ask(self._book)))
        try:
            async with asyncio.timeout(QUERY_WITHIN):
                return await asyncio.shield(task)
        except TimeoutError:
            return None


class _Kept(Generic[T]):
    """The last answer for each set of pools, for as long as it is fresh."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: dict[frozenset[PoolName], tuple[float, T]] = {}
        self._locks: dict[frozenset[PoolName], asyncio.Lock] = {}

    async def get(self, names: frozenset[PoolName], fetch: Callable[[], Awaitable[T]]) -> T:
        async with self._locks.setdefault(names, asyncio.Lock()):
            kept = self._answers.get(names)
            if kept is not None and self._clock() - kept[0] < FRESH:
                return kept[1]
            answer = await fetch()
            self._answers[names] = (self._clock(), answer)
            return answer


async def _unless_away(answer: Awaitable[T]) -> T | None:
    try:
        return await answer
    except StoreError:
        return None


def _names(pools: Pools) -> frozenset[PoolName]:
    return frozenset(pool.name for pool in pools)


def _counts(lines: Iterable[UsageLine]) -> Iterable[UsageCount]:
    for one in lines:
        yield UsageCount(one.group or "", one.requests, one.failed, one.tokens_in, one.tokens_out)


def _as_past_request(past: Past) -> PastRequest:
    request, attempts = past
    return PastRequest(
        request_id=request.request_id,
        pool=request.pool,
        key=request.key,
        key_name=None,
        model=request.model,
        lane=request.lane,
        route=request.route,
        stream=request.stream,
        outcome=request.outcome,
        status=request.status,
        retry_count=request.retry_count,
        started=request.started,
        ended=request.ended,
        usage=request.usage,
        attempts=tuple(
            PastAttempt(
                one.ordinal,
                one.assignment,
                one.outcome,
                one.reason,
                one.status,
                one.started,
                one.ended,
            )
            for one in attempts
        ),
    )
