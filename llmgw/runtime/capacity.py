"""How many requests run at once: per key, per pool and per assignment, with a queue before pools.

Who finds no room waits in line, first come first served, as far as there is room for what each
one wants. Where nothing is limited, nothing is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from llmgw.core.capacity import Pace, wait_for_room
from llmgw.core.config import LimitsConfig, Pool
from llmgw.core.errors import LimitReached
from llmgw.core.policy import Principal
from llmgw.core.types import AssignmentId, Headers, KeyId, PoolName
from llmgw.observe.metrics import QUEUE_DEPTH, QUEUE_WAIT, TIMEOUTS, child

Leave = Callable[[], None]
HasRoom = Callable[[], bool]

UNLIMITED = nullcontext()


@dataclass(slots=True, eq=False)
class _Waiter:
    """`admitted` is done once its place in the pool is taken for it."""

    has_room: HasRoom
    admitted: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class _Gate:
    """One pool's, or one key's."""

    running: int = 0
    limit: int = 0
    is_one_coming: bool = False  # admitted from the queue, and not yet where it is going
    pace: Pace = field(default_factory=Pace)
    queue: deque[_Waiter] = field(default_factory=deque)

    @property
    def has_room(self) -> bool:
        return self.running < self.limit

    @property
    def is_open(self) -> bool:
        """Who is coming takes a place at an assignment: before that nobody knows what is left."""
        return self.has_room and not self.is_one_coming


class Capacity:
    """Counts what runs. A place that is taken is given back on every way out."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pools: dict[PoolName, _Gate] = {}
        self._keys: dict[KeyId, _Gate] = {}
        self._assignments: Counter[AssignmentId] = Counter()

    def of_key(self, principal: Principal) -> AbstractContextManager[None]:
        """On entry it raises `LimitReached` where the key's own limit is used up."""
        if principal.max_in_flight is None or principal.key is None:
            return UNLIMITED
        return self._counted(principal.key, principal.max_in_flight)

    @contextmanager
    def _counted(self, key: KeyId, limit: int) -> Iterator[None]:
        gate = self._keys.setdefault(key, _Gate())
        gate.limit = limit
        if not gate.has_room:
            raise LimitReached(
                "this key has too many requests in flight", headers=self._hint(gate)
            )
        gate.running += 1
        try:
            yield
        finally:
            self._end(gate)

    async def enter(self, pool: Pool, limits: LimitsConfig, has_room: HasRoom) -> Leave:
        """Take a place in the pool, once it has one and `has_room`; then call the answer when
        the request ends. Raises `LimitReached` where the queue is full, or the wait too long.

        What `has_room` has found must be taken before anything is awaited.
        """
        limit = limits.max_in_flight if pool.max_in_flight is None else pool.max_in_flight
        if limit is None:
            return _nothing
        gate = self._pools.setdefault(pool.name, _Gate())
        gate.limit = limit
        self._admit_waiting(gate)
        if gate.is_open and has_room():
            gate.running += 1
        else:
            await self._wait(gate, pool.name, limits, has_room)
        return lambda: self._leave(gate)

    def take(self, assignment: AssignmentId, limit: int | None) -> Leave | None:
        """A place at the assignment; None: it is full."""
        if limit is None:
            return _nothing
        if not self.is_free(assignment, limit):
            return None
        self._assignments[assignment] += 1
        return lambda: self._release(assignment)

    def is_free(self, assignment: AssignmentId, limit: int | None) -> bool:
        return limit is None or self._assignments[assignment] < limit

    async def _wait(
        self, gate: _Gate, pool: PoolName, limits: LimitsConfig, has_room: HasRoom
    ) -> None:
        if len(gate.queue) >= limits.queue:
            raise self._overloaded(gate)
        waiter = _Waiter(has_room, asyncio.get_running_loop().create_future())
        gate.queue.append(waiter)
        depth, began = child(QUEUE_DEPTH, pool), self._clock()
        depth.inc()
        try:
            async with asyncio.timeout(limits.queue_timeout):
                await waiter.admitted
        except BaseException as error:
            self._give_up(gate, waiter)
            if isinstance(error, TimeoutError):
                child(TIMEOUTS, "place").inc()
                raise self._overloaded(gate) from None
            raise
        finally:
            depth.dec()
        asyncio.get_running_loop().call_soon(self._next, gate)
        QUEUE_WAIT.observe(self._clock() - began)

    def _give_up(self, gate: _Gate, waiter: _Waiter) -> None:
        """Leave the queue; a place that was given in this very moment goes to the next."""
        if waiter in gate.queue:
            gate.queue.remove(waiter)
        else:
            gate.running -= 1
            self._next(gate)

    def _next(self, gate: _Gate) -> None:
        """Whoever was coming has arrived, or never will."""
        gate.is_one_coming = False
        self._admit_waiting(gate)

    def _admit_waiting(self, gate: _Gate) -> None:
        for waiter in tuple(gate.queue):
            if not gate.is_open:
                return
            if not waiter.admitted.done() and waiter.has_room():
                gate.queue.remove(waiter)
                gate.running += 1
                gate.is_one_coming = True
                waiter.admitted.set_result(None)

    def _leave(self, gate: _Gate) -> None:
        self._end(gate)
        self._admit_waiting(gate)

    def _release(self, assignment: AssignmentId) -> None:
        self._assignments[assignment] -= 1
        if self._assignments[assignment] <= 0:
            del self._assignments[assignment]
        for gate in self._pools.values():
            self._admit_waiting(gate)

    def _end(self, gate: _Gate) -> None:
        gate.running -= 1
        gate.pace.ended(self._clock())

    def _overloaded(self, gate: _Gate) -> LimitReached:
        return LimitReached(
            "all capacity is in use, and so is the queue",
            code="server_is_overloaded",
            headers=self._hint(gate),
        )

    def _hint(self, gate: _Gate) -> Headers:
        wait = wait_for_room(len(gate.queue), gate.pace.per_second(self._clock()))
        return (("retry-after", str(wait)),)


def _nothing() -> None:
    """Where nothing is limited there is nothing to give back."""
