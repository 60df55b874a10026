"""The splice: bytes as they come, and what silence, slowness and ends do."""

import asyncio

import pytest

from llmgw.core.config import StreamsConfig
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.tail import Tail
from llmgw.core.types import Dialect
from llmgw.runtime.splice import LINGER, ClientStalled, Splice
from llmgw.runtime.wheel import Wheel
from tests.fakes.downstream import FakeDownstream
from tests.fakes.exchange import FakeExchange

HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
LIMITS = StreamsConfig(keepalive=10.0, idle_timeout=30.0, client_stall=60.0)


class Scene:
    """One spliced stream with a clock that stands still unless told."""

    def __init__(self, exchange: FakeExchange) -> None:
        self.now = 0.0
        self.exchange = exchange
        self.client = FakeDownstream()
        self.client.commit(200, ())
        self.wheel = Wheel(1.0, clock=lambda: self.now)
        self.splice = Splice(
            exchange,
            self.client,
            Tail(Dialect.CHAT),
            dialect=Dialect.CHAT,
            limits=LIMITS,
            wheel=self.wheel,
        )

    async def started(self, released: bytes = HI) -> asyncio.Task[UpstreamError | None]:
        task = asyncio.create_task(self.splice.run(released))
        await asyncio.sleep(0)
        self.wheel.turn()
        return task

    def after(self, seconds: float) -> None:
        """Silence is counted from the tick that sees it first."""
        self.wheel.turn()
        self.now += seconds
        self.wheel.turn()


async def test_what_was_withheld_goes_first_and_the_rest_as_it_comes():
    scene = Scene(FakeExchange(reads=(b"data: a\n", b"\ndata: b\n\n")))

    assert await scene.splice.run(HI) is None

    assert scene.client.body == HI + b"data: a\n\ndata: b\n\n"
    assert len(scene.wheel) == 0


async def test_a_cut_is_told():
    fault = UpstreamError(FaultKind.CUT)
    scene = Scene(FakeExchange(end=fault))

    assert await scene.splice.run(HI) is fault


async def test_silence_is_filled_between_events_only():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    scene.after(10.0)
    scene.after(1.0)
    assert scene.client.body == HI + b": keepalive\n"

    scene.exchange.push(b"data: half")
    scene.after(10.0)
    assert scene.client.body.endswith(b"half")
    task.cancel()


async def test_too_long_a_silence_ends_the_attempt():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    scene.after(LIMITS.idle_timeout)
    fault = await task

    assert fault is not None
    assert fault.kind is FaultKind.IDLE
    assert scene.exchange.aborted


async def test_silence_is_never_counted_from_before_the_last_bytes():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()
    scene.now += 9.0  # since the last tick

    scene.exchange.push(HI)
    scene.now += LIMITS.idle_timeout - 0.5
    scene.wheel.turn()
    scene.wheel.turn()

    assert not task.done()
    task.cancel()


async def test_a_slow_client_stops_its_upstream_and_silence_does_not_count():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    scene.client.stall()
    assert scene.exchange.paused
    scene.after(LIMITS.idle_timeout)
    scene.client.flow()
    scene.after(1.0)

    assert not scene.exchange.paused
    assert not task.done()
    task.cancel()


async def test_a_client_that_is_slow_from_the_start_stops_its_upstream():
    scene = Scene(FakeExchange(hangs=True))
    scene.client.paused = True

    task = await scene.started()

    assert scene.exchange.paused
    task.cancel()


async def test_a_client_that_takes_nothing_is_given_up():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    scene.client.stall()
    scene.after(LIMITS.client_stall)

    with pytest.raises(ClientStalled):
        await task
    assert scene.exchange.aborted
    assert len(scene.wheel) == 0


async def test_after_the_terminal_event_the_client_does_not_wait_for_the_upstream():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    scene.exchange.push(DONE)
    assert await task is None
    assert not scene.exchange.aborted, "its connection may still be of use"
    scene.exchange.push(b": too late\n\n")
    assert scene.client.body == HI + DONE

    scene.after(LINGER)
    assert scene.exchange.aborted
    assert len(scene.wheel) == 0


async def test_an_upstream_that_ends_in_time_keeps_its_connection():
    scene = Scene(FakeExchange(reads=(DONE,)))

    assert await scene.splice.run(HI) is None
    scene.after(LINGER)

    assert not scene.exchange.aborted
    assert len(scene.wheel) == 0


async def test_a_client_that_leaves_ends_the_upstream_call():
    scene = Scene(FakeExchange(hangs=True))
    task = await scene.started()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert scene.exchange.aborted
    assert len(scene.wheel) == 0
