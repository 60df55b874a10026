"""How a relayed stream begins and, above all, how it ends."""

import asyncio
import json

import pytest

from llmgw.core.config import StreamsConfig
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.observe.metrics import OPEN_STREAMS, WITHHELD_OVERFLOWS
from tests.builders import call, streaming
from tests.fakes.events import (
    COMPLETED,
    CREATED,
    DONE,
    FAILED,
    HELLO,
    MESSAGE_DELTA,
    MESSAGE_START,
    MESSAGE_STOP,
    ROLE,
    STOP,
    TEXT_DELTA,
    USAGE,
    data,
    named,
)
from tests.fakes.exchange import SSE, FakeExchange
from tests.fakes.patience import until
from tests.fakes.scene import CUT, Scene, answers, streams

IDLE = UpstreamError(FaultKind.IDLE)
MESSAGES_TEXT = named("content_block_delta", delta={"type": "text_delta", "text": "Hel"})
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


async def served(*reads: bytes, dialect: str = "chat", **fields):
    scene = Scene(streams(*reads, **fields), answers())
    await scene.serves(streaming(PATHS[dialect]))
    return scene


def last_data(body: bytes) -> dict:
    return json.loads(body.strip().rsplit(b"data: ", 1)[1])


@pytest.mark.parametrize(
    ("dialect", "reads"),
    [
        pytest.param("chat", (ROLE, HELLO, STOP, USAGE, DONE), id="chat"),
        pytest.param("chat", (HELLO, STOP), id="a finish reason and no [DONE]"),
        pytest.param("chat", (ROLE + HELLO + STOP + DONE,), id="all in one read"),
        pytest.param("responses", (CREATED, TEXT_DELTA, COMPLETED), id="responses"),
        pytest.param(
            "messages", (MESSAGE_START, MESSAGES_TEXT, MESSAGE_DELTA, MESSAGE_STOP), id="messages"
        ),
    ],
)
async def test_a_whole_stream_passes_byte_for_byte(dialect, reads):
    scene = await served(*reads, dialect=dialect)

    assert scene.client.body == b"".join(reads)
    assert scene.client.ending == "whole"
    assert scene.client.header("x-accel-buffering") == "no"
    assert scene.outcomes == ["succeeded"]


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        pytest.param((("retry-after", "7"),), "upstream_full", id="it says when to come back"),
        pytest.param((), "upstream_error", id="it does not"),
    ],
)
async def test_an_upstream_that_says_inside_that_it_is_away_is_full_by_its_head(later, reason):
    away = data({"error": {"message": "m", "type": "x", "code": 503}})
    scene = Scene(FakeExchange(200, (*SSE, *later), (away,)), streams(HELLO, DONE))

    await scene.serves(streaming(PATHS["chat"]))

    assert scene.settled == [[("retryable_failed", reason), ("succeeded", None)]]


async def test_a_terminal_event_without_its_blank_line_gets_one():
    scene = await served(HELLO, DONE.rstrip())

    assert scene.client.body == HELLO + DONE
    assert scene.outcomes == ["succeeded"]


@pytest.mark.parametrize("end", [None, CUT], ids=["ended", "cut"])
@pytest.mark.parametrize(
    ("dialect", "visible"),
    [("chat", HELLO), ("responses", TEXT_DELTA), ("messages", MESSAGES_TEXT)],
    ids=["chat", "responses", "messages"],
)
async def test_a_stream_without_its_end_gets_one_error_event(dialect, visible, end):
    scene = await served(visible, dialect=dialect, end=end)

    extra = scene.client.body.removeprefix(visible)
    assert extra.count(b"data: ") == 1
    assert extra.endswith(b"\n\n")
    assert b"[DONE]" not in extra
    assert scene.client.ending == "whole, closed"
    assert scene.settled == [[("failed", "upstream_cut")]]


async def test_the_error_event_of_a_responses_stream_goes_on_counting():
    scene = await served(CREATED, TEXT_DELTA, dialect="responses", end=CUT)

    event = last_data(scene.client.body)
    assert (event["type"], event["code"]) == ("error", "upstream_error")
    assert event["sequence_number"] == 2


async def test_silence_after_output_is_told_as_a_timeout():
    scene = await served(HELLO, end=IDLE)

    assert last_data(scene.client.body)["error"]["code"] == "upstream_timeout"
    assert scene.settled == [[("failed", "upstream_idle")]]


async def test_inside_an_event_nothing_more_can_be_said():
    scene = await served(HELLO, b'data: {"cho', end=CUT)

    assert scene.client.body == HELLO + b'data: {"cho'
    assert scene.client.ending == "cut"


async def test_a_failure_that_the_upstream_tells_itself_passes_and_counts():
    scene = await served(TEXT_DELTA, FAILED, dialect="responses")

    assert scene.client.body == TEXT_DELTA + FAILED
    assert scene.client.ending == "whole"
    assert scene.settled == [[("failed", "upstream_error")]]


async def test_a_whole_stream_on_a_broken_connection_is_a_success_and_closes():
    scene = await served(HELLO, STOP, end=CUT)

    assert scene.client.body == HELLO + STOP
    assert scene.client.ending == "whole, closed"
    assert scene.outcomes == ["succeeded"]


async def test_usage_is_read_from_the_end_of_the_stream():
    scene = await served(ROLE, HELLO, USAGE, DONE)

    assert (scene.row.usage.tokens_in, scene.row.usage.tokens_out) == (3, 2)


async def test_a_blank_answer_is_an_answer():
    scene = await served(ROLE, STOP, DONE)

    assert scene.client.body == ROLE + STOP + DONE
    assert scene.outcomes == ["succeeded"]


async def test_what_ends_before_it_shows_anything_is_replaced():
    scene = await served(ROLE)

    assert scene.outcomes == ["retryable_failed", "succeeded"]


async def test_too_much_withheld_is_let_go_and_counted():
    before = WITHHELD_OVERFLOWS.labels("m")._value.get()
    scene = Scene(
        streams(ROLE, ROLE, hangs=True), answers(), streams=StreamsConfig(hold_bytes=len(ROLE))
    )
    task = asyncio.create_task(scene.serves(streaming()))
    await until(lambda: scene.client.body == ROLE + ROLE)

    assert WITHHELD_OVERFLOWS.labels("m")._value.get() - before == 1
    task.cancel()


async def test_a_compact_stream_withholds_nothing_and_its_end_settles_it():
    scene = Scene(streams(CREATED, FAILED), answers())

    made = call(b'{"model":"m","stream":true}', path="/v1/responses/compact")
    await scene.serves(made)

    assert scene.client.body == CREATED + FAILED
    assert scene.outcomes == ["failed"]
    assert len(scene.upstreams.asked) == 1


async def test_open_streams_are_counted_until_they_end_however_they_end():
    before = OPEN_STREAMS._value.get()
    scene = Scene(streams(HELLO, hangs=True))
    task = asyncio.create_task(scene.serves(streaming()))
    await until(lambda: OPEN_STREAMS._value.get() - before == 1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert OPEN_STREAMS._value.get() == before
