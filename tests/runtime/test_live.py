"""One client's responses websocket, without a wire."""

from __future__ import annotations

import asyncio

import pytest

from llmgw.core.config import StreamsConfig, WebsocketConfig
from llmgw.core.frames import Closed, Message
from llmgw.observe.metrics import OPEN_WEBSOCKETS, TIMEOUTS, child
from tests.fakes.live import MODEL_NOT_FOUND, completed, create, created, delta, whole
from tests.fakes.sockets import FakeSocket, said
from tests.fakes.turn_scene import TurnScene

BYE = Closed(1000)
WARM_UP = {**create(), "generate": False}


def line(*events) -> FakeSocket:
    return FakeSocket(*map(said, events))


async def settle() -> None:
    """Let everything run that waits for nothing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_turns_are_served_one_after_another_until_the_client_leaves():
    upstream = line(*whole(), created("resp_2"), completed("resp_2"))
    scene = TurnScene(upstream)

    await scene.session(create("a"), create("b"), BYE).run()

    assert scene.client.events == [*whole(), created("resp_2"), completed("resp_2")]
    assert [one["input"] for one in upstream.events] == ["a", "b"]
    assert scene.attempts == [[("p/a", "succeeded")], [("p/a", "succeeded")]]


async def test_the_upstreams_websocket_ends_with_the_clients():
    upstream = line(*whole())
    scene = TurnScene(upstream)

    await scene.session(create(), BYE).run()

    assert upstream.closed is not None
    assert len(scene.gateway.wheel) == 0


async def test_a_turn_moves_on_before_anything_is_visible():
    a, b = line(created("resp_a"), MODEL_NOT_FOUND), line(*whole("resp_b"))
    scene = TurnScene(a, b)

    await scene.session(create(), BYE).run()

    assert scene.client.events == whole("resp_b")
    assert scene.attempts == [[("p/a", "retryable_failed"), ("p/b", "succeeded")]]


async def test_binary_ends_it_with_1003():
    scene = TurnScene()

    await scene.session(Message(b"\x00", is_text=False)).run()

    assert scene.client.closed[0] == 1003


@pytest.mark.parametrize(
    ("frame", "status"),
    [
        pytest.param(Message(b"{"), 400, id="no JSON"),
        pytest.param({"type": "x"}, 400, id="no turn"),
        pytest.param({**create(), "model": ""}, 400, id="no model"),
    ],
)
async def test_what_can_not_be_served_is_an_error_frame_and_the_socket_stays(frame, status):
    scene = TurnScene(line(*whole()), takes=True)

    await scene.session(frame, create(), BYE).run()

    refused, *served = scene.client.events
    assert (refused["type"], refused["status"]) == ("error", status)
    assert served == whole()


async def test_a_key_that_was_revoked_since_is_told_so_and_the_socket_ends():
    scene = TurnScene()

    await scene.session(scene.revoke, create()).run()

    assert scene.client.events[0]["status"] == 401
    assert scene.client.closed[0] == 1008


async def test_a_warm_up_is_answered_here_and_leaves_no_row():
    scene = TurnScene(line(*whole()))

    await scene.session(WARM_UP, BYE).run()

    assert [one["type"] for one in scene.client.events] == [
        "response.created",
        "response.completed",
    ]
    assert scene.client.events[-1]["response"]["output"] == []
    assert scene.sockets.asked == scene.attempts == []


async def test_a_turn_that_continues_on_a_warm_up_carries_what_it_said():
    upstream = line(*whole())
    scene = TurnScene(upstream)
    session = scene.session(WARM_UP)
    running = asyncio.ensure_future(session.run())
    await settle()
    response_id = scene.client.events[-1]["response"]["id"]

    scene.client.comes(said(create("more", previous_response_id=response_id)), BYE)
    await running

    (frame,) = upstream.events
    assert [one["content"] for one in frame["input"]] == ["hello", "more"]
    assert "previous_response_id" not in frame


async def test_a_warm_up_that_is_too_large_to_be_kept_is_refused():
    scene = TurnScene(websocket=WebsocketConfig(transcript_bytes=600))

    await scene.session({**WARM_UP, "input": "x" * 1000}, BYE).run()

    assert scene.client.events[0]["status"] == 413


async def test_an_acknowledgement_is_nothing():
    scene = TurnScene()

    await scene.session({"type": "response.processed"}, BYE).run()

    assert scene.client.sent == []


async def test_ticks_go_to_the_client_and_to_the_upstream_that_is_tried():
    upstream = line(created(), delta("h"))
    scene = TurnScene(upstream)
    session = scene.session(create())
    running = asyncio.ensure_future(session.run())
    await settle()

    session.tick(5.0)  # in the first turn
    upstream.comes(said(completed()))
    await settle()
    session.tick(6.0)  # between two turns

    assert upstream.beats == scene.client.beats == [5.0, 6.0]
    scene.client.comes(BYE)
    await running


async def test_a_drain_ends_it_after_the_running_turn():
    upstream = line(created(), delta("h"))
    scene = TurnScene(upstream)
    session = scene.session(create())
    running = asyncio.ensure_future(session.run())
    await settle()

    scene.draining = True
    session.tick(1.0)
    assert scene.client.closed is None
    upstream.comes(said(completed()))
    await running

    assert scene.client.events[-1] == completed()
    assert scene.client.closed[0] == 1001


async def test_a_client_that_takes_nothing_is_asked_for_nothing_more():
    scene = TurnScene()
    scene.client.paused = True
    running = asyncio.ensure_future(scene.session(*[Message(b"{")] * 5, BYE).run())
    await settle()
    assert len(scene.client.sent) == 1

    scene.client.flow()
    await running

    assert len(scene.client.sent) == 5


async def test_a_client_that_takes_nothing_for_too_long_is_cut():
    before = child(TIMEOUTS, "client")._value.get()
    scene = TurnScene(streams=StreamsConfig(client_stall=0.01))
    scene.client.paused = True

    await scene.session(Message(b"{"), Message(b"{")).run()

    assert scene.client.aborted
    assert child(TIMEOUTS, "client")._value.get() == before + 1


async def test_a_client_that_leaves_inside_a_turn_leaves_nothing():
    upstream = line(created(), delta("h"))
    scene = TurnScene(upstream)
    before = OPEN_WEBSOCKETS._value.get()
    running = asyncio.ensure_future(scene.session(create()).run())
    await settle()
    assert OPEN_WEBSOCKETS._value.get() == before + 1

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert scene.attempts == [[("p/a", "cancelled")]]
    assert upstream.closed is not None
    assert OPEN_WEBSOCKETS._value.get() == before
    assert len(scene.gateway.wheel) == 0
