"""Answers that are no event stream: judged while they can be replaced, or passed through."""

import asyncio
import json

import pytest

from llmgw.core.config import GatewayConfig, StreamsConfig
from llmgw.core.document import BOM
from llmgw.observe.metrics import PASSTHROUGH
from tests.builders import call, streaming
from tests.fakes.exchange import JSON, FakeExchange
from tests.fakes.scene import ANSWER, CUT, ROLE, Scene, answers, streams

SMALL = GatewayConfig(max_buffered_response_bytes=8)
LARGE = (b"[1,2,3,4,5", b",6]")
MISS = b'{"error":{"message":"SECRET","type":"x","code":"model_not_found"}}'


def of_length(size: int) -> bytes:
    return json.dumps({"pad": "x" * size}).encode()


def passed_through() -> float:
    return PASSTHROUGH.labels("m", "buffer_limit")._value.get()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(JSON, ANSWER, id="JSON"),
        pytest.param(JSON, b"[]", id="a list"),
        pytest.param((("content-type", "text/html"),), b"<html>", id="what never said JSON"),
        pytest.param((), b"\x00\x01", id="bytes of no type"),
        pytest.param((("content-type", "application/x-ndjson"),), b"{}\n{}\n", id="JSON by line"),
        pytest.param(JSON, of_length(70_000), id="too large to be judged"),
        pytest.param(JSON, BOM + ANSWER, id="JSON behind a byte order mark"),
        pytest.param(JSON, BOM + of_length(70_000), id="large, behind a byte order mark"),
    ],
)
async def test_a_whole_answer_goes_out_as_it_came(headers, body):
    scene = Scene(FakeExchange(200, headers, (body[:1], body[1:])))

    client = await scene.serves()

    assert (client.status, client.body, client.ending) == (200, body, "whole")
    assert scene.outcomes == ["succeeded"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "upstream_invalid", id="nothing"),
        pytest.param(b'{"choices":[', "upstream_invalid", id="cut JSON"),
        pytest.param(of_length(70_000)[:-1], "upstream_invalid", id="cut, and large"),
        pytest.param(b"x" * 70_000, "upstream_invalid", id="large, and no JSON"),
        pytest.param(MISS, "upstream_model_unavailable", id="an error object"),
        pytest.param(BOM + MISS, "upstream_model_unavailable", id="an error behind a mark"),
    ],
)
async def test_what_is_said_to_be_json_and_is_not_an_answer_is_replaced(body, reason):
    scene = Scene(answers(body), answers())

    client = await scene.serves()

    assert (client.status, client.body) == (200, ANSWER)
    assert scene.settled == [[("retryable_failed", reason), ("succeeded", None)]]


async def test_an_error_object_under_200_is_full_where_the_head_says_when_to_come_back():
    away = b'{"error":{"message":"SECRET","type":"x","code":503}}'
    scene = Scene(FakeExchange(200, (*JSON, ("retry-after", "7")), (away,)), answers())

    await scene.serves()

    assert scene.settled == [[("retryable_failed", "upstream_full"), ("succeeded", None)]]


async def test_a_media_type_is_the_same_in_any_case():
    shouted = (("content-type", "Application/JSON; charset=UTF-8"),)
    scene = Scene(FakeExchange(200, shouted, (b"<html>",)), answers())

    client = await scene.serves()

    assert (client.status, client.body) == (200, ANSWER)


async def test_no_content_is_an_answer_whatever_type_its_head_says():
    scene = Scene(FakeExchange(204, JSON))

    client = await scene.serves()

    assert (client.status, client.body) == (204, b"")
    assert scene.outcomes == ["succeeded"]


async def test_an_error_under_200_that_nobody_can_replace_becomes_a_status():
    scene = Scene(answers(MISS), answers(MISS))

    client = await scene.serves()

    assert client.status == 404
    assert json.loads(client.body)["error"]["code"] == "model_not_found"


async def test_after_an_early_commit_a_plain_answer_is_no_answer():
    scene = Scene(
        answers(), streams(ROLE, hangs=True), streams=StreamsConfig(first_event_timeout=0.01)
    )
    scene.client.commit(200, ())

    task = asyncio.create_task(scene.serves(streaming()))
    await settle()

    assert scene.client.body == b""
    assert len(scene.upstreams.asked) == 2
    task.cancel()


async def test_a_large_answer_passes_through_as_it_comes_and_is_counted():
    before = passed_through()
    scene = Scene(FakeExchange(200, JSON, LARGE), gateway=SMALL)

    client = await scene.serves()

    assert (client.body, client.ending) == (b"".join(LARGE), "whole")
    assert scene.outcomes == ["succeeded"]
    assert passed_through() - before == 1


async def test_a_large_answer_that_breaks_is_cut_and_never_replaced():
    scene = Scene(FakeExchange(200, JSON, LARGE, CUT), answers(), gateway=SMALL)

    client = await scene.serves()

    assert (client.body, client.ending) == (b"".join(LARGE), "cut")
    assert scene.settled == [[("failed", "upstream_cut")]]
    assert len(scene.upstreams.asked) == 1


async def test_a_slow_client_of_a_large_answer_is_waited_for():
    exchange = FakeExchange(200, JSON, LARGE)
    scene = Scene(exchange, gateway=SMALL)
    scene.client.stall()
    task = asyncio.create_task(scene.serves())
    await settle()
    assert scene.client.body == LARGE[0]

    scene.client.flow()
    await task

    assert scene.client.body == b"".join(LARGE)
    assert scene.outcomes == ["succeeded"]


async def test_a_client_that_takes_nothing_of_a_large_answer_is_cut_and_its_upstream_not_blamed():
    exchange = FakeExchange(200, JSON, LARGE)
    scene = Scene(exchange, answers(), gateway=SMALL, streams=StreamsConfig(client_stall=0.01))
    scene.client.stall()

    client = await scene.serves()

    assert (client.body, client.ending) == (LARGE[0], "cut")
    assert exchange.aborted
    assert scene.outcomes == ["cancelled"]
    assert len(scene.upstreams.asked) == 1
    assert scene.gateway.board.view() == {}


async def test_the_first_event_timeout_does_not_reach_what_the_client_already_sees():
    limits = StreamsConfig(first_event_timeout=0.01)
    exchange = FakeExchange(200, JSON, LARGE)
    scene = Scene(exchange, answers(), gateway=SMALL, streams=limits)
    scene.client.stall()
    task = asyncio.create_task(scene.serves(streaming()))
    await asyncio.sleep(0.03)

    scene.client.flow()
    await task

    assert (scene.client.body, scene.client.ending) == (b"".join(LARGE), "whole")
    assert len(scene.upstreams.asked) == 1


async def test_a_client_that_leaves_a_large_answer_ends_the_upstream_call():
    exchange = FakeExchange(200, JSON, (LARGE[0],), hangs=True)
    scene = Scene(exchange, gateway=SMALL)
    task = asyncio.create_task(scene.serves())
    await settle()
    assert scene.client.committed

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert exchange.aborted
    assert scene.outcomes == ["cancelled"]


async def test_a_response_that_is_made_is_pinned_before_the_client_knows_its_id():
    body = b'{"id":"resp_1","object":"response","output":[]}'
    scene = Scene(answers(body))

    await scene.serves(call(b'{"model":"m","input":"x"}', path="/v1/responses"))

    assert [key[2] for key in scene.database.pins.rows] == ["resp_1"]
