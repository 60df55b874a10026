"""Timers that end what nobody would notice, on a scripted transport."""

import asyncio

import pytest

from llmgw.web import watches
from llmgw.web.watches import EndWatch, FlushWatch


class Transport:
    """`sizes` are what waits to be sent, one a look."""

    def __init__(self, *sizes: int, socket=None) -> None:
        self._sizes = list(sizes)
        self._socket = socket
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return self._sizes.pop(0)

    def get_extra_info(self, name):
        return self._socket

    def abort(self) -> None:
        self.aborted.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(watches, "FLUSH_WITHIN", 0.005)
    monkeypatch.setattr(watches, "LOOK_EVERY", 0.005)


async def within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("sizes", "aborted"),
    [
        pytest.param((0,), False, id="nothing waits"),
        pytest.param((100, 100), True, id="nothing is taken"),
        pytest.param((100, 90, 90, 90), True, id="taken for a while"),
        pytest.param((100, 50, 50, 1, 1, 0, 0), False, id="taken to the end"),
    ],
)
async def test_a_closed_transport_is_aborted_once_nothing_is_taken(sizes, aborted):
    transport = Transport(*sizes)
    FlushWatch(asyncio.get_running_loop()).begin(transport)

    assert await within(transport.aborted, 0.05) is aborted


async def test_a_watch_that_ended_does_nothing():
    transport = Transport(100, 100)
    watch = FlushWatch(asyncio.get_running_loop())
    watch.begin(transport)
    watch.begin(transport)

    watch.end()
    watch.end()

    assert not await within(transport.aborted, 0.02)


async def test_without_a_transport_there_is_nothing_to_watch():
    loop = asyncio.get_running_loop()

    FlushWatch(loop).begin(None)
    EndWatch(loop).begin(None)


async def test_an_end_is_found_at_the_next_look(monkeypatch):
    seen = iter((False, False, True))
    monkeypatch.setattr(watches, "has_left", lambda transport: next(seen))
    transport = Transport()
    watch = EndWatch(asyncio.get_running_loop())
    watch.begin(transport)
    watch.begin(transport)

    assert await within(transport.aborted, 0.1)
    watch.end()
