"""Both directions of a realtime session, without a wire."""

from __future__ import annotations

import asyncio

import pytest

from llmgw.core.config import ModelsConfig, StreamsConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.frames import Closed, Message
from llmgw.core.realtime import parse_realtime
from llmgw.observe.metrics import OPEN_WEBSOCKETS
from llmgw.runtime.answer import Broken, Errand, Refused, Served
from llmgw.runtime.realtime import PATIENCE, QUIET, RealtimeAttempts
from tests.fakes.downstream import FakeDownstream
from tests.fakes.live import TOKEN
from tests.fakes.sockets import FakeSocket, refused
from tests.fakes.turn_scene import TurnScene

AUDIO = Message(b"\x00\xff", is_text=False)


class Session:
    """One try on an upstream that is this socket."""

    def __init__(self, opened, **sections) -> None:
        self.scene = TurnScene(opened, **sections)
        self.upstream = opened
        self.accepted: list[str | None] = []
        self.attempts = RealtimeAttempts(
            self.scene.gateway,
            self.scene.sockets,
            token=TOKEN,
            protocols=("realtime",),
            accept=self._accept,
            draining=lambda: self.scene.draining,
        )

    @property
    def client(self) -> FakeSocket:
        return self.scene.client

    def _accept(self, protocol: str | None) -> FakeSocket:
        self.accepted.append(protocol)
        return self.client

    async def run(self):
        gateway = self.scene.gateway
        call = parse_realtime("?model=m1", headers=(), models=ModelsConfig(), request_id="req_1")
        errand = Errand(call, gateway.config, FakeDownstream(), "m1")
        candidate = Candidate("p/b", self.scene.config.accounts[0])
        return await self.attempts(gateway._tools, errand, candidate, last=True)

    async def begin(self) -> asyncio.Future:
        running = asyncio.ensure_future(self.run())
        await settle()
        return running

    def turn(self, seconds: float) -> None:
        """Ticks of the wheel for this long."""
        for _ in range(int(seconds)):
            self.scene.clock.advance(1.0)
            self.scene.gateway.wheel.turn()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_either_side_says_reaches_the_other_as_it_is():
    session = Session(FakeSocket(Message(b"hi"), AUDIO))
    session.client.comes(AUDIO, Message(b"ho"))

    running = await session.begin()

    assert session.client.sent == [Message(b"hi"), AUDIO]
    assert session.upstream.sent == [AUDIO, Message(b"ho")]
    session.client.comes(Closed(1000))
    assert await running == Served(101)


async def test_the_client_is_accepted_once_an_upstream_has_with_what_it_chose():
    upstream = FakeSocket(Closed(1000))
    upstream.protocol = "realtime"
    session = Session(upstream)

    await session.run()

    assert session.accepted == ["realtime"]
    assert session.scene.sockets.asked[0]["protocols"] == ("realtime",)


@pytest.mark.parametrize(
    ("opened", "kind"),
    [
        pytest.param(refused(503), FaultKind.STATUS, id="refused"),
        pytest.param(refused(404), FaultKind.UNSUPPORTED, id="no websockets"),
        pytest.param(UpstreamError(FaultKind.CONNECT), FaultKind.CONNECT, id="not reached"),
    ],
)
async def test_before_an_upstream_accepts_the_client_is_told_nothing(opened, kind):
    session = Session(opened)

    result = await session.run()

    assert isinstance(result, Refused)
    assert result.fault.kind is kind
    assert session.accepted == []


@pytest.mark.parametrize(
    ("by_upstream", "told", "is_failure"),
    [
        pytest.param(Closed(1000, "done"), (1000, "done"), False, id="as it said"),
        pytest.param(Closed(4321), (4321, ""), False, id="a code of its own"),
        pytest.param(Closed(1006), (1011, ""), True, id="lost"),
        pytest.param(Closed(1011), (1011, ""), True, id="an error of its own"),
        pytest.param(Closed(1009, broken=True), (1011, ""), True, id="protocol broken"),
    ],
)
async def test_how_the_upstream_ends_it_is_how_the_client_is_closed(by_upstream, told, is_failure):
    session = Session(FakeSocket(by_upstream))

    result = await session.run()

    assert session.client.closed == told
    assert isinstance(result, Broken if is_failure else Served)


@pytest.mark.parametrize(
    ("by_client", "told"),
    [
        pytest.param(Closed(4000, "bye"), (4000, "bye"), id="as it said"),
        pytest.param(Closed(1002, broken=True), (1001, ""), id="protocol broken"),
    ],
)
async def test_how_the_client_ends_it_is_how_the_upstream_is_closed(by_client, told):
    session = Session(FakeSocket())
    session.client.comes(by_client)

    assert await session.run() == Served(101)
    assert session.upstream.closed == told


@pytest.mark.parametrize("side", ["client", "upstream"])
async def test_a_side_that_takes_nothing_is_given_up(side):
    session = Session(FakeSocket(AUDIO), streams=StreamsConfig(client_stall=0.01))
    session.client.comes(AUDIO)
    getattr(session, side).stuck = True

    await session.run()

    assert getattr(session, side).aborted
    assert session.client.closed is not None
    assert session.upstream.closed is not None


async def test_a_session_that_goes_on_is_looked_after():
    before = OPEN_WEBSOCKETS._value.get()
    session = Session(FakeSocket())
    running = await session.begin()
    assert OPEN_WEBSOCKETS._value.get() == before + 1

    session.turn(3)

    assert len(session.client.beats) == len(session.upstream.beats) == 3
    assert session.client.closed is None
    session.client.comes(Closed(1000))
    await running
    assert OPEN_WEBSOCKETS._value.get() == before
    assert len(session.scene.gateway.wheel) == 0


@pytest.mark.parametrize(("what", "code"), [("drain", 1001), ("revoked key", 1008)])
async def test_what_ends_a_quiet_session(what, code):
    session = Session(FakeSocket())
    running = await session.begin()
    if what == "drain":
        session.scene.draining = True
    else:
        session.scene.revoke()

    session.turn(QUIET)

    assert await running == Served(101)
    assert session.client.closed[0] == code
    assert session.upstream.closed == (1001, "")


async def test_a_session_that_is_never_quiet_is_not_waited_for_for_ever():
    session = Session(FakeSocket())
    running = await session.begin()
    session.turn(1)
    session.scene.revoke()

    for _ in range(int(PATIENCE) + 1):
        session.client.comes(AUDIO)
        await settle()
        if session.client.closed is not None:
            break
        session.turn(1)
    await running

    assert session.client.closed[0] == 1008
    assert len(session.upstream.sent) > PATIENCE - 3
