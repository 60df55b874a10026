"""What requests have shown of assignments lately, kept in memory and bounded.

This gateway's own view: the database has that of all. It is fed by settlements and by nothing
else, so a page that is looked at costs no upstream a request.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from llmgw.core.admin_seen import BUCKETS, QUIET, WIDTH, ErrorSeen, Sample, Sighting, total_of
from llmgw.core.admin_usage import UsageCount
from llmgw.core.admin_view import Seat
from llmgw.core.failover import Outcome
from llmgw.core.settle import AttemptRow, RequestRow, Settlement
from llmgw.core.types import AssignmentId, PoolName, RouteClass

MOST_ERRORS = 5  # an assignment
MOST_SERVED = 2000  # (model, lane) pairs an assignment; clients choose names where it is untried
MOST_REQUESTS = 200  # a pool
MOST_COUNTED = 20_000  # requests of five minutes that usage is added up from, a pool
ABSENT = (405, 501)
CLIENTS_OWN = "client_error"  # the reason of what is no fault of the assignment

_TRIED = Sample(attempts=1)
_FAILED = Sample(attempts=1, failures=1)

Past = tuple[RequestRow, tuple[AttemptRow, ...]]


class Observed:
    """Told of every settled request; answers for some pools, never for all at once."""

    def __init__(self, *, wanted: bool = True, wall: Callable[[], float] = time.time) -> None:
        """`wanted`: somebody may look; else nothing is kept."""
        self.wanted = wanted
        self._wall = wall
        self._seats: dict[Seat, _Seat] = {}
        self._pools: dict[PoolName, _Lately] = {}

    def settled(self, done: Settlement) -> None:
        if not self.wanted:
            return
        request = done.request
        for attempt in done.attempts:
            self._seat(request.pool, attempt.assignment).attempted(request, attempt)
        if done.first_event is not None:
            self._seat(request.pool, done.attempts[-1].assignment).streamed_after(
                request.ended, done.first_event
            )
        lately = self._pools.get(request.pool)
        if lately is None:
            lately = self._pools[request.pool] = _Lately()
        lately.requests.append((request, done.attempts))
        lately.counted.append(request)

    def sightings(self, pools: Collection[PoolName]) -> Mapping[Seat, Sighting]:
        now = self._wall()
        return {seat: one.sighting(now) for seat, one in self._seats.items() if seat[0] in pools}

    def requests(self, pools: Collection[PoolName], limit: int) -> list[Past]:
        """The newest first."""
        found = [one for pool in pools for one in self._lately(pool).requests]
        return sorted(found, key=lambda one: one[0].started, reverse=True)[:limit]

    def usage(self, pools: Collection[PoolName]) -> list[UsageCount]:
        """By model, of the last five minutes."""
        since = self._wall() - BUCKETS * WIDTH
        counts: dict[str, UsageCount] = {}
        for pool in pools:
            for request in self._lately(pool).counted:
                if request.started >= since:
                    known = counts.get(request.model) or UsageCount(request.model, 0, 0, 0, 0)
                    counts[request.model] = _counted(known, request)
        return list(counts.values())

    def retain(self, seats: Collection[Seat]) -> None:
        """After a reload: forget assignments and pools that are gone."""
        pools = {pool for pool, _ in seats}
        self._seats = {seat: one for seat, one in self._seats.items() if seat in seats}
        self._pools = {pool: one for pool, one in self._pools.items() if pool in pools}

    def _seat(self, pool: PoolName, assignment: AssignmentId) -> _Seat:
        seat = self._seats.get((pool, assignment))
        if seat is None:
            seat = self._seats[pool, assignment] = _Seat()
        return seat

    def _lately(self, pool: PoolName) -> _Lately:
        return self._pools.get(pool) or _NOTHING


@dataclass(slots=True)
class _Lately:
    """The last requests of a pool."""

    requests: deque[Past] = field(default_factory=lambda: deque(maxlen=MOST_REQUESTS))
    counted: deque[RequestRow] = field(default_factory=lambda: deque(maxlen=MOST_COUNTED))


_NOTHING = _Lately()


@dataclass(slots=True)
class _Ring:
    """Samples by time; what is older than the ring is gone."""

    samples: list[Sample] = field(default_factory=lambda: list(QUIET))
    slot: int = 0  # of the newest sample, in units of WIDTH

    def add(self, now: float, sample: Sample) -> None:
        self._turn(now)
        self.samples[-1] = total_of((self.samples[-1], sample))

    def read(self, now: float) -> tuple[Sample, ...]:
        self._turn(now)
        return tuple(self.samples)

    def _turn(self, now: float) -> None:
        """A clock that is set back goes on in the newest sample."""
        slot = int(now / WIDTH)
        passed = min(BUCKETS, max(0, slot - self.slot))
        if passed:
            self.samples = [*self.samples[passed:], *QUIET[:passed]]
            self.slot = slot


@dataclass(slots=True)
class _Seat:
    """One assignment of one pool."""

    ring: _Ring = field(default_factory=_Ring)
    errors: deque[ErrorSeen] = field(default_factory=lambda: deque(maxlen=MOST_ERRORS))
    served: OrderedDict[tuple[str, RouteClass], float] = field(default_factory=OrderedDict)
    routes: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    streamed: bool = False

    def attempted(self, request: RequestRow, attempt: AttemptRow) -> None:
        if attempt.outcome is Outcome.CANCELLED:
            return
        served = attempt.outcome is Outcome.SUCCEEDED
        failed = not served and attempt.reason != CLIENTS_OWN
        self.ring.add(attempt.ended, _FAILED if failed else _TRIED)
        if served:
            self._served(request, attempt)
            return
        if failed:
            self._failed(request, attempt)
        if attempt.status in ABSENT:
            self.absent.add(request.route)

    def streamed_after(self, now: float, seconds: float) -> None:
        """A stream's first visible event went out that long after the client's request."""
        self.ring.add(now, Sample(first_events=1, first_event_seconds=seconds))

    def sighting(self, now: float) -> Sighting:
        return Sighting(
            samples=self.ring.read(now),
            errors=tuple(self.errors),
            served=dict(self.served),
            routes=frozenset(self.routes),
            absent=frozenset(self.absent - self.routes),
            streamed=self.streamed,
        )

    def _served(self, request: RequestRow, attempt: AttemptRow) -> None:
        self.served[request.model, request.lane] = attempt.ended
        self.served.move_to_end((request.model, request.lane))
        if len(self.served) > MOST_SERVED:
            self.served.popitem(last=False)
        self.routes.add(request.route)
        self.streamed = self.streamed or request.stream

    def _failed(self, request: RequestRow, attempt: AttemptRow) -> None:
        reason = attempt.reason or "unknown"
        self.errors.appendleft(ErrorSeen(attempt.ended, reason, attempt.status, request.model))


def _counted(known: UsageCount, request: RequestRow) -> UsageCount:
    usage = request.usage
    return UsageCount(
        known.model,
        known.requests + 1,
        known.failed + (request.outcome is Outcome.FAILED),
        known.tokens_in + (usage.tokens_in or 0),
        known.tokens_out + (usage.tokens_out or 0),
    )
