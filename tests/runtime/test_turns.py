"""How one turn is tried on a candidate: on a websocket where there are any, else over SSE."""

from __future__ import annotations

import json

import pytest

from llmgw.core.config import BaseUrl, WebsocketConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.transcript import Transcript
from llmgw.runtime.answer import Errand, Refused, Served
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.direct import Line
from llmgw.runtime.turns import TurnAttempts
from tests.builders import account
from tests.fakes.exchange import FakeExchange
from tests.fakes.live import whole
from tests.fakes.sockets import FakeSocket, refused, said
from tests.fakes.turn_scene import TurnScene, turn_of

CONTINUES = (
    b'{"type":"response.create","model":"m1","input":"and","previous_response_id":"resp_0"}'
)
EARLIER = '{"type":"message","role":"user","content":"before"}'
TYPED = (("content-type", "text/event-stream"),)


def stream(response_id: str = "resp_1") -> FakeExchange:
    events = [f"data: {json.dumps(one)}\n\n".encode() for one in whole(response_id)]
    return FakeExchange(200, TYPED, (b"".join(events),))


class Tried:
    """One turn on assignment `p/b`."""

    def __init__(
        self, *sockets, posts=(), frame=None, line=None, home=None, takes=None, **sections
    ) -> None:
        self.scene = TurnScene(*sockets, posts=posts, takes=takes, **sections)
        self.upstream = self.scene.config.accounts[0]
        self.turn = turn_of() if frame is None else turn_of(frame)
        self.transcript = Transcript(100_000)
        self.out = FrameDownstream(self.scene.client, pinned=False, transcript_bytes=100_000)
        self.attempts = TurnAttempts(
            self.turn,
            line=line,
            transcript=self.transcript,
            out=self.out,
            sockets=self.scene.sockets,
            support=self.scene.support,
            home=self._home,
        )
        self._lives_at = home

    async def _home(self, response_id: str):
        return self._lives_at

    async def run(self):
        gateway = self.scene.gateway
        errand = Errand(self.turn.call, gateway.config, self.out, "m1")
        candidate = Candidate("p/b", self.upstream)
        return await self.attempts(gateway._tools, errand, candidate, last=True)

    @property
    def posted(self) -> list[dict]:
        return [json.loads(request.body) for _, request in self.scene.posts.asked]


async def test_a_websocket_is_tried_first_and_what_is_found_is_kept():
    socket = FakeSocket(*map(said, whole()))
    tried = Tried(socket)

    assert isinstance(await tried.run(), Served)

    assert tried.attempts.line.socket is socket
    assert tried.attempts.tried is tried.attempts.line
    assert tried.scene.support.of(tried.upstream) is True
    assert not tried.attempts.was_bridged


async def test_an_upstream_that_refuses_upgrades_is_asked_by_a_post_in_the_same_attempt():
    tried = Tried(refused(403), posts=(stream(),))

    assert isinstance(await tried.run(), Served)

    assert tried.scene.client.events == whole()
    assert tried.scene.support.of(tried.upstream) is False
    assert tried.attempts.was_bridged
    assert tried.posted == [{"stream": True, "model": "m1", "input": "hi"}]


async def test_an_upstream_that_is_known_to_take_none_is_not_tried():
    tried = Tried(posts=(stream(),), takes=False)

    await tried.run()

    assert tried.scene.sockets.asked == []
    assert len(tried.posted) == 1


async def test_without_bridges_it_is_no_candidate():
    tried = Tried(refused(403), websocket=WebsocketConfig(bridge=False))

    result = await tried.run()

    assert isinstance(result, Refused)
    assert result.fault.kind is FaultKind.UNSUPPORTED
    assert tried.scene.posts.asked == []


async def test_a_live_line_to_this_assignment_is_used():
    socket = FakeSocket(*map(said, whole()))
    tried = Tried()
    tried.attempts.line = Line("p/b", tried.upstream.url, socket)

    assert isinstance(await tried.run(), Served)
    assert tried.scene.sockets.asked == []


@pytest.mark.parametrize(
    "line_of",
    [
        pytest.param(lambda url, socket: Line("p/a", url, socket), id="to another assignment"),
        pytest.param(
            lambda url, socket: Line("p/b", BaseUrl("http", "127.0.0.1", 1), socket),
            id="to where it was before",
        ),
    ],
)
async def test_a_line_to_somewhere_else_is_not_used(line_of):
    tried = Tried(FakeSocket(*map(said, whole())))
    elsewhere = FakeSocket()
    tried.attempts.line = line_of(tried.upstream.url, elsewhere)

    assert isinstance(await tried.run(), Served)

    assert elsewhere.sent == []
    assert elsewhere.closed is not None


async def test_a_line_that_has_ended_is_not_used():
    tried = Tried(FakeSocket(*map(said, whole())))
    gone = FakeSocket()
    gone.abort()
    tried.attempts.line = Line("p/b", tried.upstream.url, gone)

    assert isinstance(await tried.run(), Served)
    assert gone.sent == []


async def test_what_the_transcript_knows_goes_along_instead_of_the_reference():
    socket = FakeSocket(*map(said, whole()))
    direct = Tried(socket, frame=CONTINUES)
    bridged = Tried(frame=CONTINUES, posts=(stream(),), takes=False)
    for one in (direct, bridged):
        one.transcript.add("resp_0", parent=None, input="before")
        await one.run()

    (frame,) = socket.events
    (posted,) = bridged.posted
    for sent in (frame, posted):
        assert json.dumps(sent["input"][0], separators=(",", ":")) == EARLIER
        assert sent["input"][1]["content"] == "and"
        assert "previous_response_id" not in sent


async def test_a_reference_that_nobody_here_knows_is_the_websockets_own_affair():
    socket = FakeSocket(*map(said, whole()))

    await Tried(socket, frame=CONTINUES).run()

    assert socket.events == [json.loads(CONTINUES)]


async def test_over_a_bridge_it_must_live_there():
    elsewhere = Tried(frame=CONTINUES, home="p/a", takes=False)
    there = Tried(frame=CONTINUES, home="p/b", takes=False, posts=(stream(),))

    result = await elsewhere.run()

    assert (result.fault.status, result.fault.code) == (400, "previous_response_not_found")
    assert elsewhere.posted == []
    assert isinstance(await there.run(), Served)
    assert there.posted[0]["previous_response_id"] == "resp_0"


def test_an_account_may_be_told_that_it_takes_none():
    scene = TurnScene()

    assert scene.support.of(account("x", websocket=False)) is False
