"""The wheel: one clock for all streams."""

import asyncio

import pytest

from llmgw.core.config import StreamsConfig
from llmgw.runtime.wheel import COARSEST, FINEST, Wheel, period_for


class Member:
    def __init__(self, wheel: Wheel, *, leaves: bool = False) -> None:
        self.seen: list[float] = []
        self._wheel = wheel
        self._leaves = leaves
        wheel.add(self)

    def tick(self, now: float) -> None:
        self.seen.append(now)
        if self._leaves:
            self._wheel.discard(self)


def test_every_member_is_told_the_time_once_a_turn():
    times = iter([0.0, 5.0, 6.0])
    wheel = Wheel(1.0, clock=lambda: next(times))
    stays, leaves = Member(wheel), Member(wheel, leaves=True)

    wheel.turn()
    wheel.turn()

    assert stays.seen == [5.0, 6.0]
    assert leaves.seen == [5.0]
    assert wheel.now == 6.0
    assert len(wheel) == 1


def test_one_that_is_gone_may_be_discarded_again():
    wheel = Wheel(1.0)
    member = Member(wheel)

    wheel.discard(member)
    wheel.discard(member)

    assert len(wheel) == 0


@pytest.mark.parametrize(
    ("streams", "period"),
    [
        pytest.param(StreamsConfig(), COARSEST, id="the defaults want no more than a second"),
        pytest.param(StreamsConfig(keepalive=2.0), 0.2, id="a tenth of the shortest limit"),
        pytest.param(StreamsConfig(idle_timeout=0.01), FINEST, id="never finer than that"),
    ],
)
def test_a_turn_is_as_long_as_the_limits_allow(streams, period):
    assert period_for(streams) == pytest.approx(period)


async def test_a_running_wheel_turns():
    wheel = Wheel(0.001)
    turned = asyncio.Event()

    class Waiter:
        def tick(self, now: float) -> None:
            turned.set()

    wheel.add(Waiter())
    running = asyncio.create_task(wheel.run())

    async with asyncio.timeout(5):
        await turned.wait()
    running.cancel()
