import asyncio
import itertools

import pytest

from llmgw.daemon.heartbeat import PERIOD, Heartbeat


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def heartbeat(clock, pings, lags=None, ping_every=None):
    return Heartbeat(
        observe_lag=[].append if lags is None else lags.append,
        ping=lambda: pings.append(clock.now),
        ping_every=ping_every,
        clock=clock,
    )


def test_without_a_watchdog_nobody_is_pinged(clock):
    pings = []

    heartbeat(clock, pings).beat()

    assert pings == []


def test_a_ping_never_comes_later_than_it_is_due(clock):
    pings = []
    heart = heartbeat(clock, pings, ping_every=1.0)

    for _ in range(13):
        heart.beat()
        clock.now += PERIOD

    assert pings[0] == 100.0
    assert all(later - sooner <= 1.0 for sooner, later in itertools.pairwise(pings))
    assert len(pings) < 13


async def test_the_lag_is_what_a_sleep_took_too_long(clock, monkeypatch):
    lags = []
    heart = heartbeat(clock, [], lags)

    async def late(seconds):
        clock.now += seconds + 0.2
        if len(lags) == 2:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", late)
    with pytest.raises(asyncio.CancelledError):
        await heart.run()

    assert lags == [pytest.approx(0.2)] * 2
