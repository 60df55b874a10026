"""Places: who gets one, who waits in line for one, and that each is given back once."""

import asyncio

import pytest

from llmgw.core.config import LimitsConfig, Pool
from llmgw.core.errors import LimitReached
from llmgw.core.types import CLUSTER, AssignmentId
from llmgw.observe.metrics import QUEUE_DEPTH
from llmgw.runtime.capacity import Capacity
from tests.builders import principal
from tests.fakes.clock import Clock
from tests.fakes.patience import until

POOL = Pool(CLUSTER, ())
A = AssignmentId("cluster/a")
LIMITS = LimitsConfig(max_in_flight=1, queue=2, queue_timeout=5.0)


def always() -> bool:
    return True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def capacity(clock):
    return Capacity(clock=clock)


class Line:
    """Requests that want a place, and the order in which they got one."""

    def __init__(self, capacity: Capacity, limits: LimitsConfig = LIMITS) -> None:
        self.capacity = capacity
        self.limits = limits
        self.served: list[str] = []
        self.leaves = {}

    def join(self, name: str, has_room=always) -> asyncio.Task:
        return asyncio.ensure_future(self._enter(name, has_room))

    async def _enter(self, name, has_room) -> None:
        self.leaves[name] = await self.capacity.enter(POOL, self.limits, has_room)
        self.served.append(name)


async def settled(*tasks: asyncio.Task) -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_where_nothing_is_limited_nobody_waits(capacity):
    leaves = [await capacity.enter(POOL, LimitsConfig(), always) for _ in range(100)]

    for leave in leaves:
        leave()
    assert capacity.take(A, None)() is None


async def test_who_waits_is_served_in_order_as_places_become_free(capacity):
    line = Line(capacity)
    tasks = []
    for name in ("one", "two", "three"):
        tasks.append(line.join(name))
        await settled()
    assert line.served == ["one"]
    assert QUEUE_DEPTH.labels(CLUSTER)._value.get() == 2

    line.leaves["one"]()
    await settled()
    assert line.served == ["one", "two"]
    line.leaves["two"]()
    await asyncio.gather(*tasks)

    assert line.served == ["one", "two", "three"]
    assert QUEUE_DEPTH.labels(CLUSTER)._value.get() == 0


async def test_the_pools_own_limit_counts_before_the_general_one(capacity):
    pool = Pool(CLUSTER, (), max_in_flight=2)

    await capacity.enter(pool, LIMITS, always)
    await capacity.enter(pool, LIMITS, always)

    with pytest.raises(LimitReached):
        await capacity.enter(pool, LimitsConfig(max_in_flight=9), always)


async def test_a_full_queue_refuses_and_says_when_to_come_back(capacity, clock):
    line = Line(capacity)
    for name in ("one", "two", "three"):
        line.join(name)
        await settled()
    for _ in range(2):  # two ends in four seconds
        clock.advance(2.0)
        line.leaves[line.served[-1]]()
        await settled()
    line.join("four"), line.join("five")
    await settled()

    with pytest.raises(LimitReached) as refused:
        await capacity.enter(POOL, LIMITS, always)

    assert (refused.value.status, refused.value.code) == (429, "server_is_overloaded")
    assert refused.value.headers == (("retry-after", "3"),)  # two ahead, one a second


async def test_a_wait_that_is_too_long_is_refused(capacity):
    await capacity.enter(POOL, LIMITS, always)

    with pytest.raises(LimitReached):
        await capacity.enter(
            POOL, LimitsConfig(max_in_flight=1, queue=1, queue_timeout=0.001), always
        )

    assert QUEUE_DEPTH.labels(CLUSTER)._value.get() == 0


async def test_a_client_that_leaves_leaves_the_queue(capacity):
    line = Line(capacity)
    line.join("one")
    await settled()
    two, three = line.join("two"), line.join("three")
    await settled()

    two.cancel()
    await settled()
    line.leaves["one"]()
    await three

    assert line.served == ["one", "three"]


async def test_a_client_that_leaves_as_its_turn_comes_hands_the_place_on(capacity):
    line = Line(capacity)
    line.join("one")
    await settled()
    two, three = line.join("two"), line.join("three")
    await settled()

    line.leaves["one"]()
    two.cancel()
    await three

    assert line.served == ["one", "three"]


async def test_a_client_that_is_leaving_is_given_no_place(capacity):
    line = Line(capacity)
    line.join("one")
    await settled()
    two, three = line.join("two"), line.join("three")
    await settled()

    two.cancel()
    line.leaves["one"]()
    await three

    assert line.served == ["one", "three"]
    line.leaves["three"]()
    assert await capacity.enter(POOL, LIMITS, always)


async def test_who_waits_for_a_full_assignment_holds_up_nobody_else(capacity):
    line = Line(capacity, LimitsConfig(max_in_flight=2, queue=2))
    taken = capacity.take(A, 1)

    line.join("for a", lambda: capacity.is_free(A, 1))
    await settled()
    line.join("for b")
    await settled()
    assert line.served == ["for b"]

    taken()
    await until(lambda: line.served == ["for b", "for a"])


class Busy(Line):
    """Requests for one assignment, where one may run, in a pool that has places left."""

    async def _enter(self, name, has_room) -> None:
        await super()._enter(name, lambda: self.capacity.is_free(A, 1))
        self.leaves[name] = self.capacity.take(A, 1), self.leaves[name]

    def leave(self, name) -> None:
        for leave in self.leaves[name]:
            leave()


async def test_one_free_place_at_an_assignment_is_given_to_one_of_those_who_wait(capacity):
    line = Busy(capacity, LimitsConfig(max_in_flight=9, queue=3))
    names = ["one", "two", "three", "four"]
    tasks = []
    for name in names:
        tasks.append(line.join(name))
        await settled()

    for number, name in enumerate(names, 1):
        await tasks[number - 1]
        assert line.served == names[:number]
        line.leave(name)
        await settled()


async def test_nobody_overtakes_one_who_is_on_the_way_to_a_free_place(capacity):
    line = Busy(capacity, LimitsConfig(max_in_flight=9, queue=3))
    line.join("one")
    await settled()
    waits = line.join("waits")
    await settled()

    comes_late = line.join("comes late")  # its turn of the loop is before that of who waits
    line.leave("one")
    await waits

    assert line.served == ["one", "waits"]
    line.leave("waits")
    await comes_late


async def test_a_full_assignment_is_not_taken_twice(capacity):
    leave = capacity.take(A, 1)

    assert capacity.take(A, 1) is None
    leave()
    assert capacity.take(A, 1) is not None


async def test_a_key_may_run_as_many_as_it_is_allowed(capacity, clock):
    who = principal(max_in_flight=1)

    with capacity.of_key(who), pytest.raises(LimitReached) as refused, capacity.of_key(who):
        pass
    assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded")
    assert dict(refused.value.headers)["retry-after"]
    with capacity.of_key(who), capacity.of_key(principal()):
        pass
