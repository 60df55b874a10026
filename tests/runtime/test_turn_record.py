from __future__ import annotations

import asyncio

import pytest

from llmgw.core.frames import Closed, Message
from llmgw.daemon.tally import Tally
from llmgw.observe import logs
from llmgw.observe.metrics import REQUESTS, child
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.turn_record import TurnRecord
from llmgw.web.access import AccessRecord, Ending
from tests.builders import POOL, principal
from tests.fakes.live import completed, create, created, delta, whole
from tests.fakes.sockets import FakeSocket, said
from tests.fakes.turn_scene import TurnScene


@pytest.fixture
def lines(monkeypatch):
    """The fields of each access line."""
    found: list[dict] = []
    monkeypatch.setattr(logs, "access", lambda **fields: found.append(fields))
    monkeypatch.setattr(
        logs, "answered", lambda stencil, *holes: found.append(stencil.fields(*holes))
    )
    return found


def line(*events) -> FakeSocket:
    return FakeSocket(*map(said, events))


async def test_a_turns_line_says_what_the_line_of_an_http_request_says(lines):
    upstream = line(*whole(), created("resp_2"), completed("resp_2"))
    scene = TurnScene(line(created(), {"type": "error", "status": 503}), upstream)

    await scene.session(create(), create(), Closed(1000)).run()
    Tally(scene.gateway)(AccessRecord("POST", "/v1/responses", 200, 1, 0.1, "r", Ending.WHOLE))

    first, second, http = lines
    assert set(first) == set(second) == set(http)
    assert (first["assignment"], first["attempts"], first["status"]) == ("p/b", 2, 200)
    assert (second["assignment"], second["attempts"]) == ("p/b", 1)
    assert (first["key"], first["model"], first["ending"]) == ("k0", "m1", "whole")
    assert 0 < first["overhead"] < first["seconds"]
    assert first["bytes"] == sum(len(one.data) for one in scene.client.sent[:3])


async def test_a_frame_that_was_refused_has_a_line_and_counts_too(lines):
    before = child(REQUESTS, "other", "400")._value.get()
    scene = TurnScene()

    await scene.session(Message(b"{"), Closed(1000)).run()

    (refused,) = lines
    assert (refused["status"], refused["attempts"], refused["model"]) == (400, 0, None)
    assert refused["key"] == "k0"
    assert child(REQUESTS, "other", "400")._value.get() == before + 1


async def test_what_nobody_asked_for_has_no_line(lines):
    scene = TurnScene()
    warm_up = {**create(), "generate": False}

    await scene.session(warm_up, {"type": "response.processed"}, Closed(1000)).run()

    assert lines == []


@pytest.mark.parametrize(
    ("fields", "cut", "ending"),
    [({}, False, "whole"), ({"has_left": True}, False, "left"), ({}, True, "cut")],
    ids=["whole", "the client left", "the client was cut"],
)
def test_how_a_turn_ended(lines, fields, cut, ending):
    scene = TurnScene()
    out = FrameDownstream(FakeSocket(), pinned=False, transcript_bytes=1)
    out.was_cut = cut
    record = TurnRecord("req_1", principal=principal(POOL), **fields)
    record.parsed("m1")

    record.tell(scene.gateway, out)

    assert lines[0]["ending"] == ending


async def test_a_client_that_leaves_inside_a_turn_is_said_to_have_left(lines):
    scene = TurnScene(line(created(), delta("h")))
    session = scene.session(create())
    running = asyncio.ensure_future(session.run())
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (lines[0]["ending"], lines[0]["status"]) == ("left", 200)
    assert lines[0]["assignment"] == "p/a"


def test_a_model_that_nobody_knows_is_no_label(lines):
    scene = TurnScene()
    record = TurnRecord("req_1", principal=principal(POOL))
    record.parsed("made-up-by-a-client")

    record.tell(scene.gateway, FrameDownstream(FakeSocket(), pinned=False, transcript_bytes=1))

    assert lines[0]["model"] == "other"
