"""One try of a turn over an upstream's websocket."""

from __future__ import annotations

import asyncio

import pytest

from llmgw.core.classify import Fault
from llmgw.core.config import StreamsConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.frames import Closed, Message
from llmgw.core.health import Failed
from llmgw.observe.metrics import OPEN_STREAMS, WITHHELD_OVERFLOWS, child
from llmgw.runtime.answer import Broken, Errand, Refused, Served
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.direct import DirectAttempt, Line
from llmgw.runtime.splice import ClientStalled
from tests.builders import config, node
from tests.fakes.live import MODEL_NOT_FOUND, completed, created, delta, error, whole
from tests.fakes.sockets import FakeSocket, said
from tests.fakes.turn_scene import TurnScene, turn_of

FRAME = turn_of().call.body


class Host:
    """The turn that is tried, on one scripted line."""

    def __init__(self, socket: FakeSocket, **sections) -> None:
        self.scene = TurnScene(**sections)
        self.upstream = self.scene.config.accounts[0]
        self.socket = socket
        self.line: Line | None = None
        self.out = FrameDownstream(self.scene.client, pinned=False, transcript_bytes=1000)
        self.refusal: Refused | UpstreamError | None = None

    @property
    def client(self) -> FakeSocket:
        return self.scene.client

    def frame(self) -> bytes:
        return FRAME

    async def connect(self, tools, errand, candidate):
        if isinstance(self.refusal, UpstreamError):
            raise self.refusal
        return self.refusal or self.line or Line("p/b", self.upstream.url, self.socket)

    async def run(self, *, last: bool = True):
        gateway = self.scene.gateway
        errand = Errand(turn_of().call, gateway.config, self.out, "m1")
        candidate = Candidate("p/b", self.upstream)
        return await DirectAttempt(self, gateway._tools, errand, candidate, last=last).run()


def comes(*events) -> FakeSocket:
    return FakeSocket(*(one if isinstance(one, Message | Closed) else said(one) for one in events))


async def test_a_turn_that_is_served_makes_its_line_the_one_to_go_on_with():
    host = Host(comes(*whole()))

    result = await host.run()

    assert result == Served(200, result.usage)
    assert (result.usage.tokens_in, result.usage.tokens_out) == (3, 2)
    assert host.client.events == whole()
    assert host.socket.sent == [Message(FRAME)]
    assert host.line.socket is host.socket
    assert host.socket.closed is None


async def test_what_came_before_the_frame_was_sent_is_dropped():
    host = Host(comes(*whole()))

    await host.run()

    assert host.socket.dropped == 1


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        pytest.param((MODEL_NOT_FOUND,), FaultKind.STATUS, id="an error frame"),
        pytest.param((created(), error(503)), FaultKind.STATUS, id="an error behind created"),
        pytest.param((Closed(1011),), FaultKind.LOST, id="closed before any frame"),
        pytest.param((created(), Closed(1011)), FaultKind.EMPTY, id="closed behind created"),
        pytest.param((created(), Closed(1006)), FaultKind.CUT, id="cut behind created"),
        pytest.param((Closed(1002, broken=True),), FaultKind.INVALID, id="protocol broken"),
        pytest.param((Message(b"x", is_text=False),), FaultKind.INVALID, id="binary"),
    ],
)
async def test_a_failure_before_anything_is_visible_leaves_no_frame(events, kind):
    host = Host(comes(*events))

    result = await host.run()

    assert isinstance(result, Refused)
    assert result.fault.kind is kind
    assert host.client.sent == []
    assert host.socket.closed is not None
    assert host.line is None


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        pytest.param((Closed(1000),), FaultKind.CUT, id="closed"),
        pytest.param((Closed(1002, broken=True),), FaultKind.CUT, id="protocol broken"),
        pytest.param((Message(b"x", is_text=False),), FaultKind.INVALID, id="binary"),
    ],
)
async def test_after_visible_output_nothing_is_a_refusal(events, kind):
    host = Host(comes(created(), delta("h"), *events))

    result = await host.run()

    assert isinstance(result, Broken)
    assert result.fault.kind is kind
    assert [one.get("status") for one in host.client.events] == [None, None, 502]
    assert host.socket.closed is not None


async def test_the_frame_may_be_too_large_for_the_upstream():
    result = await Host(comes(Closed(1009))).run()

    assert result.fault.status == 413


async def test_a_response_that_failed_after_visible_output_is_served_with_its_fault():
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error"}}}
    host = Host(comes(created(), delta("h"), failed))

    result = await host.run()

    assert isinstance(result, Served)
    assert result.fault.code == "server_error"
    assert host.client.events[-1] == failed
    assert host.line is None


async def test_a_live_line_that_says_why_not_stays():
    host = Host(comes(MODEL_NOT_FOUND))
    host.line = line = Line("p/b", host.upstream.url, host.socket)

    await host.run()

    assert host.line is line
    assert host.socket.closed is None


async def test_a_line_that_takes_the_place_of_another_ends_it():
    host = Host(comes(*whole()))
    before = Line("p/b", host.upstream.url, FakeSocket())
    new = Line("p/b", host.upstream.url, host.socket)
    host.line = before

    async def connect(tools, errand, candidate):
        return new

    host.connect = connect
    await host.run()

    assert host.line is new
    assert before.socket.closed is not None


async def test_an_upstream_without_websockets_is_no_result():
    host = Host(FakeSocket())
    host.refusal = Refused(Fault(FaultKind.UNSUPPORTED))

    assert await host.run() is None


async def test_no_connection_is_a_refusal_and_leaves_nothing():
    host = Host(FakeSocket())
    host.refusal = UpstreamError(FaultKind.CONNECT)

    result = await host.run()

    assert result.fault.kind is FaultKind.CONNECT
    assert host.scene.gateway.registry.in_flight(host.upstream) == 0


async def test_silence_before_the_first_event_counts_where_another_may_serve():
    streams = StreamsConfig(first_event_timeout=0.01)
    host = Host(comes(created()), streams=streams)

    result = await host.run(last=False)

    assert result.fault.kind is FaultKind.TIMEOUT
    assert host.socket.closed is not None


async def test_silence_after_visible_output_ends_the_turn():
    host = Host(comes(created(), delta("h")), streams=StreamsConfig(idle_timeout=0.01))

    result = await host.run()

    assert isinstance(result, Broken)
    assert result.fault.kind is FaultKind.IDLE
    assert host.client.events[-1]["status"] == 504


async def test_a_client_that_takes_nothing_stops_the_reading_and_is_given_up():
    host = Host(comes(*whole()), streams=StreamsConfig(client_stall=0.01))
    host.client.paused = True

    with pytest.raises(ClientStalled):
        await host.run()

    assert len(host.client.sent) == 1
    assert host.socket.closed is not None


async def test_a_client_that_takes_it_again_gets_the_rest():
    host = Host(comes(*whole()))
    host.client.paused = True
    asyncio.get_running_loop().call_soon(host.client.flow)

    assert isinstance(await host.run(), Served)
    assert host.client.events == whole()


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param(StreamsConfig(hold_bytes=10), id="many small ones"),
        pytest.param(StreamsConfig(max_event_bytes=10), id="a large one"),
    ],
)
async def test_more_than_may_be_withheld_is_shown(streams):
    before = child(WITHHELD_OVERFLOWS, "m1")._value.get()
    host = Host(comes(created(), completed()), streams=streams)

    await host.run()

    assert host.client.events == [created(), completed()]
    if streams.hold_bytes == 10:
        assert child(WITHHELD_OVERFLOWS, "m1")._value.get() == before + 1


async def test_a_node_that_health_finds_dead_fails_what_has_no_byte_yet():
    host = Host(FakeSocket())
    host.upstream = node("n")
    registry = host.scene.gateway.registry
    registry.reload(config(host.upstream))
    running = asyncio.ensure_future(host.run())
    await asyncio.sleep(0)

    for _ in range(3):
        registry.health_event(host.upstream, Failed(connection=True))
    result = await running

    assert isinstance(result, Refused)
    assert host.socket.aborted


async def test_a_client_that_leaves_ends_the_line_and_every_count():
    host = Host(comes(created(), delta("h")))
    before = OPEN_STREAMS._value.get()
    running = asyncio.ensure_future(host.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert OPEN_STREAMS._value.get() == before + 1

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert OPEN_STREAMS._value.get() == before
    assert host.scene.gateway.registry.in_flight(host.upstream) == 0
    assert host.socket.closed is not None
