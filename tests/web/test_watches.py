"""Timers that end what nobody would notice, on a scripted transport and a clock of the test."""

import pytest

from llmgw.web import watches
from llmgw.web.watches import EndWatch, FlushWatch
from tests.fakes.stepped import SteppedLoop

LOOKS = 10  # more than any case needs


class Transport:
    """`sizes` are what waits to be sent, one a look."""

    def __init__(self, *sizes: int, socket=None) -> None:
        self._sizes = list(sizes)
        self._socket = socket
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self._sizes.pop(0)

    def get_extra_info(self, name):
        return self._socket

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def loop():
    made = SteppedLoop()
    yield made
    assert made.errors == []


def let_pass(loop: SteppedLoop, seconds: float) -> None:
    loop.advance(seconds)
    loop.run_until_quiet()


@pytest.mark.parametrize(
    ("sizes", "aborted"),
    [
        pytest.param((0,), False, id="nothing waits"),
        pytest.param((100, 100), True, id="nothing is taken"),
        pytest.param((100, 90, 90, 90), True, id="taken for a while"),
        pytest.param((100, 50, 50, 1, 1, 0, 0), False, id="taken to the end"),
    ],
)
def test_a_closed_transport_is_aborted_once_nothing_is_taken(loop, sizes, aborted):
    transport = Transport(*sizes)
    FlushWatch(loop).begin(transport)

    for _ in range(LOOKS):
        let_pass(loop, watches.FLUSH_WITHIN)

    assert transport.aborted is aborted
    assert loop.pending_timers == 0


def test_a_watch_that_ended_does_nothing(loop):
    transport = Transport(100, 100)
    watch = FlushWatch(loop)
    watch.begin(transport)
    watch.begin(transport)

    watch.end()
    watch.end()

    let_pass(loop, watches.FLUSH_WITHIN)

    assert not transport.aborted


def test_without_a_transport_there_is_nothing_to_watch(loop):
    FlushWatch(loop).begin(None)
    EndWatch(loop).begin(None)

    assert loop.pending_timers == 0


def test_an_end_is_found_at_the_next_look(loop, monkeypatch):
    seen = iter((False, False, True))
    monkeypatch.setattr(watches, "has_left", lambda transport: next(seen))
    transport = Transport()
    watch = EndWatch(loop)
    watch.begin(transport)
    watch.begin(transport)

    let_pass(loop, watches.LOOK_EVERY)
    let_pass(loop, watches.LOOK_EVERY)
    assert not transport.aborted
    let_pass(loop, watches.LOOK_EVERY)

    assert transport.aborted
    watch.end()
    assert loop.pending_timers == 0
