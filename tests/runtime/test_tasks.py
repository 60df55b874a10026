"""Tasks are named, kept, restarted and ended."""

import asyncio
import contextlib
import gc
from itertools import islice

import pytest

from llmgw.runtime.tasks import DELAY_CEILING, Supervisor, backoff, race
from tests.fakes.asked import settle
from tests.fakes.clock import Clock


class Sleeps:
    """Remembers the pauses and lets each end at once."""

    def __init__(self, clock: Clock) -> None:
        self.delays: list[float] = []
        self._clock = clock

    async def __call__(self, seconds: float) -> None:
        self.delays.append(seconds)
        self._clock.advance(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sleeps(clock):
    return Sleeps(clock)


@pytest.fixture
async def supervisor(clock, sleeps):
    made = Supervisor(sleep=sleeps, clock=clock)
    yield made
    await made.stop()


async def for_ever() -> None:
    await asyncio.Event().wait()


def test_pauses_double_up_to_a_minute():
    assert list(islice(backoff(), 8)) == [1, 2, 4, 8, 16, 32, 60, 60]


class TestSpawn:
    async def test_a_result_is_there_for_whoever_awaits_it(self, supervisor):
        async def work() -> int:
            return 7

        assert await supervisor.spawn("work", work()) == 7
        await settle()
        assert supervisor.names == ()

    async def test_a_task_that_nobody_holds_is_kept_until_it_ends(self, supervisor):
        supervisor.spawn("kept", for_ever())
        await settle()
        gc.collect()

        assert supervisor.names == ("kept",)

    async def test_a_failure_is_logged_once_with_the_task_s_name(self, supervisor, caplog):
        async def work() -> None:
            raise LookupError

        supervisor.spawn("work", work())
        await settle()

        (record,) = caplog.records
        assert (record.message, record.task) == ("task failed", "work")
        assert record.exc_info[0] is LookupError

    async def test_a_failure_reaches_whoever_awaits_it(self, supervisor):
        async def work() -> None:
            raise LookupError

        with pytest.raises(LookupError):
            await supervisor.spawn("work", work())

    async def test_a_cancelled_task_is_no_failure(self, supervisor, caplog):
        supervisor.spawn("work", for_ever()).cancel()
        await settle()

        assert caplog.records == []
        assert supervisor.names == ()


class TestLoop:
    async def test_a_failed_loop_starts_again_after_a_growing_pause(
        self, supervisor, sleeps, caplog
    ):
        left = iter([LookupError(), LookupError(), LookupError()])

        async def body() -> None:
            for error in left:
                raise error

        await supervisor.loop("lane", body)

        assert sleeps.delays == [1, 2, 4]
        assert [(one.message, one.task, one.retry_in) for one in caplog.records] == [
            ("task failed", "lane", delay) for delay in (1, 2, 4)
        ]

    async def test_after_a_long_good_run_the_pauses_begin_anew(self, supervisor, sleeps, clock):
        runs = iter([0, 0, DELAY_CEILING + 1, 0])

        async def body() -> None:
            for seconds in runs:
                clock.advance(seconds)
                raise LookupError

        await supervisor.loop("lane", body)

        assert sleeps.delays == [1, 2, 1, 2]

    async def test_a_loop_that_returns_is_over(self, supervisor, sleeps):
        async def body() -> None:
            return

        await supervisor.loop("lane", body)

        assert sleeps.delays == []

    async def test_a_cancelled_loop_is_not_started_again(self, supervisor, sleeps):
        task = supervisor.loop("lane", for_ever)
        await settle()
        task.cancel()
        await settle()

        assert task.cancelled()
        assert sleeps.delays == []


class TestStop:
    async def test_ends_every_task_and_waits_for_it(self, supervisor):
        ended = []

        async def work(name: str) -> None:
            try:
                await for_ever()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        supervisor.spawn("a", work("a"))
        supervisor.loop("b", lambda: work("b"))
        await settle()

        await supervisor.stop()

        assert sorted(ended) == ["a", "b"]
        assert supervisor.names == ()

    async def test_ends_what_ending_tasks_start(self, supervisor):
        async def work() -> None:
            try:
                await for_ever()
            finally:
                supervisor.spawn("late", for_ever())

        supervisor.spawn("work", work())
        await settle()

        await supervisor.stop()

        assert supervisor.names == ()

    async def test_names_those_that_do_not_end_in_time(self, caplog):
        stubborn = asyncio.Event()

        async def work() -> None:
            while not stubborn.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await stubborn.wait()

        supervisor = Supervisor()
        supervisor.spawn("stubborn", work())
        await settle()

        await supervisor.stop(grace=0.01)

        (record,) = caplog.records
        assert (record.message, record.tasks) == ("tasks did not stop", ["stubborn"])
        stubborn.set()
        await settle()

    async def test_may_be_called_by_one_of_the_tasks(self, supervisor):
        supervisor.spawn("other", for_ever())

        await supervisor.spawn("stopper", supervisor.stop())
        await settle()

        assert supervisor.names == ()

    async def test_afterwards_nothing_starts(self, supervisor):
        await supervisor.stop()

        with pytest.raises(RuntimeError, match="late"):
            supervisor.spawn("late", for_ever())

    async def test_twice_is_as_good_as_once(self, supervisor):
        await supervisor.stop()
        await supervisor.stop()


async def test_a_race_ends_with_its_first_runner_and_leaves_none_behind():
    ended = []

    async def quick() -> None:
        await asyncio.sleep(0)

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    await race(quick(), slow())

    assert ended == ["slow"]


async def test_what_a_runner_raises_is_raised():
    async def fails() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await race(fails(), asyncio.sleep(60))


async def test_a_race_that_is_cancelled_ends_its_runners():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    racing = asyncio.create_task(race(slow(), asyncio.sleep(60)))
    await begun.wait()
    racing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await racing
    assert ended.is_set()
