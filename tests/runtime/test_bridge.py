"""What answers a turn becomes frames, in whatever pieces it comes."""

from __future__ import annotations

import json

import pytest

from llmgw.runtime.bridge import FrameDownstream

DELTA = {"type": "response.output_text.delta", "delta": "é"}
ITEM = {"type": "message", "id": "i"}


class FakeClient:
    def __init__(self) -> None:
        self.frames: list[dict] = []
        self.paused = False
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.frames.append(json.loads(data))

    def abort(self) -> None:
        self.aborted = True


def event(data: dict, *, name: str | None = None) -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(data)}\n\n".encode()


def downstream(*, pinned: bool = False, room: int = 1000) -> tuple[FrameDownstream, FakeClient]:
    client = FakeClient()
    return FrameDownstream(client, pinned=pinned, transcript_bytes=room), client


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_each_event_is_a_frame_however_it_was_cut(size):
    out, client = downstream()
    stream = event(DELTA) + b": keepalive\n" + event(DELTA, name="x") + b"data: [DONE]\n\n"
    out.commit(200, ())

    for at in range(0, len(stream), size):
        out.write(stream[at : at + size])
    out.finish()

    assert client.frames == [DELTA, DELTA]
    assert out.status == 200


def test_an_event_that_lacks_its_blank_line_is_a_frame_too():
    out, client = downstream()
    out.commit(200, ())
    out.write(event(DELTA).rstrip())
    assert client.frames == []

    out.finish()

    assert client.frames == [DELTA]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        pytest.param(event({"type": "error", "code": "c"}), 502, id="flat"),
        pytest.param(event({"error": {"code": 503}}), 503, id="an envelope without a type"),
        pytest.param(event({"message": "m"}, name="error"), 502, id="by its name"),
    ],
)
def test_an_error_event_ends_the_turn_with_an_error_frame(bad, status):
    out, client = downstream()
    out.commit(200, ())

    out.write(event(DELTA) + bad + event(DELTA))
    out.finish(close=True)

    assert [one["type"] for one in client.frames] == [DELTA["type"], "error"]
    assert client.frames[1]["status"] == out.status == status


def test_a_cut_is_told_to_a_client_that_still_takes_frames():
    out, client = downstream()
    out.commit(200, ())

    out.cut()
    out.cut()

    assert [one["status"] for one in client.frames] == [502]
    assert not client.aborted


def test_a_client_that_takes_nothing_is_cut():
    out, client = downstream()
    client.paused = True

    out.cut()

    assert client.aborted
    assert client.frames == []


def test_an_unreachable_pin_says_what_it_is():
    answer = json.dumps({"error": {"code": "no_reachable_backend"}}).encode()
    codes = []
    for pinned in (True, False):
        out, client = downstream(pinned=pinned)
        out.respond(503, (("retry-after", "1"),), answer)
        codes.append(client.frames[0]["error"]["code"])

    assert codes == ["pinned_assignment_unavailable", "no_reachable_backend"]


def test_what_a_response_said_is_kept_for_the_transcript():
    out, _ = downstream()
    out.commit(200, ())
    out.write(event({"type": "response.output_item.done", "item": ITEM}))
    assert out.spoken.response_id is None

    out.write(event({"type": "response.completed", "response": {"id": "r", "output": []}}))

    assert (out.spoken.response_id, out.spoken.output) == ("r", [ITEM])


def test_more_than_the_transcript_may_hold_is_not_kept():
    out, _ = downstream(room=10)
    out.commit(200, ())
    out.write(event({"type": "response.output_item.done", "item": ITEM}))
    out.write(event({"type": "response.completed", "response": {"id": "r"}}))

    assert out.spoken.output == []
