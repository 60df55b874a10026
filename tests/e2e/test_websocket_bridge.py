"""Responses websockets whose upstreams take none: each turn is a streaming POST."""

from __future__ import annotations

import pytest
from aiohttp import WSServerHandshakeError

from llmgw.core.config import StreamsConfig, WebsocketConfig
from llmgw.core.pins import PinKind
from llmgw.core.types import RouteClass
from tests.fakes.live import (
    Provider,
    completed,
    create,
    created,
    delta,
    error,
    gateway,
    keyring,
    message,
    turns,
    whole,
)

MISS = {"error": {"code": "model_not_found", "type": "x", "param": "model", "message": "m"}}
ENGINE_MISS = {
    "error": {"message": "m", "type": "invalid_request_error", "param": "response_id", "code": 404}
}


async def test_events_become_frames_and_the_frame_a_request():
    a = Provider(streams=[whole()])
    async with gateway(a, takes=False) as running:
        client = await running.connect("/v1/responses?x=1", headers={"openai-beta": "b=v2"})

        events = await client.turn(create(stream=False, background=True, temperature=0.5))

        assert events == whole()
        assert a.posts == [
            {"model": "m1", "input": "hello", "temperature": 0.5, "stream": True},
        ]
        assert not a.upgrades
        assert running.attempts == [[("p/a", "succeeded", None)]]
        assert running.rows[0].lane is RouteClass.WEBSOCKET
        assert running.rows[0].usage.tokens_in == 3


@pytest.mark.parametrize("status", [400, 403, 404, 405, 426, 501])
async def test_a_refused_upgrade_is_found_out_once(status):
    a = Provider(refuses=status, streams=[whole("resp_1"), whole("resp_2")])
    async with gateway(a, takes=None) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_1")
        assert await (await running.connect()).turn(create()) == whole("resp_2")

        assert [len(a.upgrades), len(a.posts)] == [1, 2]
        assert [len(one) for one in running.attempts] == [1, 1], "the same attempt, no second row"


async def test_what_was_found_out_lasts_as_long_as_the_snapshot():
    a = Provider(refuses=403, streams=[whole(), whole()])
    async with gateway(a, takes=None) as running:
        await (await running.connect()).turn(create())
        upstream = running.config.accounts[0]
        assert running.live.support.of(upstream) is False

        running.gateway.replace(running.config, running.gateway.keyring)

        assert running.live.support.of(upstream) is None
        await (await running.connect()).turn(create())
        assert len(a.upgrades) == 2


async def test_a_second_assignment_serves_within_one_client_connection():
    a = Provider(answer=(404, MISS))
    b = Provider(streams=[whole("resp_b")])
    async with gateway(a, b, takes=False) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert a.posts == b.posts
        assert running.attempts == [
            [
                ("p/a", "retryable_failed", "upstream_model_unavailable"),
                ("p/b", "succeeded", None),
            ]
        ]


async def test_a_turn_moves_from_a_bridge_to_a_websocket_and_back():
    a = Provider(refuses=403, streams=[[created("resp_a"), error(None, code="server_error")]])
    b = Provider(turns(whole("resp_b")))
    async with gateway(a, b, takes=None) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert await client.is_quiet()


async def test_a_failure_behind_visible_output_is_an_error_frame_with_a_status():
    flat = {"type": "error", "code": "server_error", "message": "m", "param": None}
    a = Provider(streams=[[created(), delta("h"), flat], whole("resp_2")])
    async with gateway(a, takes=False) as running:
        client = await running.connect()

        events = await client.turn(create())
        again = await client.turn(create())

        assert events[:2] == [created(), delta("h")]
        assert events[2]["status"] == 502
        assert events[2]["error"] == {
            "type": "server_error",
            "message": "m",
            "param": None,
            "code": "server_error",
        }
        assert again == whole("resp_2")


async def test_a_stream_that_ends_early_is_an_error_frame():
    a = Provider(streams=[[created(), delta("h")]])
    async with gateway(a, takes=False) as running:
        client = await running.connect()

        events = await client.turn(create())

        assert [one.get("status") for one in events] == [None, None, 502]
        assert running.attempts[0][0][1] == "failed"


async def test_the_last_failure_is_an_error_frame():
    a = Provider(answer=(429, {"error": {"type": "x", "code": "y", "message": "m"}}))
    async with gateway(a, takes=False) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert (event["type"], event["status"]) == ("error", 429)
        assert event["error"]["code"] == "y"


async def test_an_upstream_that_gives_the_whole_response_is_understood():
    response = completed("resp_9")["response"]
    a = Provider(answer=(200, response))
    async with gateway(a, takes=False) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert (event["type"], event["response"]) == ("response.completed", response)


async def test_no_keepalive_is_invented_in_a_websocket():
    a = Provider(streams=[whole()])
    limits = StreamsConfig(keepalive=0.01, commit_after=0.01)
    async with gateway(a, takes=False, streams=limits) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole()


async def test_without_bridging_the_upgrade_is_refused_where_nobody_takes_websockets():
    settings = WebsocketConfig(bridge=False)
    async with gateway(Provider(), takes=False, websocket=settings) as running:
        with pytest.raises(WSServerHandshakeError) as refused:
            await running.connect()

        assert refused.value.status == 426


async def test_without_bridging_a_candidate_that_takes_none_is_passed_over():
    a, b = Provider(refuses=403), Provider(turns(whole()))
    settings = WebsocketConfig(bridge=False)
    async with gateway(a, b, takes=None, websocket=settings) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole()
        assert running.attempts == [
            [("p/a", "retryable_failed", "websocket_unsupported"), ("p/b", "succeeded", None)]
        ]
        assert not running.gateway.board.view(), "that is no failure of its circuit"


async def test_without_bridging_the_last_one_says_426():
    a = Provider(refuses=403)
    settings = WebsocketConfig(bridge=False)
    async with gateway(a, takes=None, websocket=settings) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert event["status"] == 426


# --- what led up to a turn


async def test_a_turn_that_continues_is_sent_with_all_that_led_up_to_it():
    a = Provider(streams=[whole("resp_1", "one"), whole("resp_2", "two"), whole("resp_3")])
    async with gateway(a, takes=False) as running:
        client = await running.connect()
        await client.turn(create("first", store=False))
        second = [{"type": "function_call_output", "call_id": "c", "output": "42"}]
        await client.turn({**create(previous_response_id="resp_1", store=False), "input": second})
        await client.turn(create("third", previous_response_id="resp_2", store=False))

        said = {"type": "message", "role": "user", "content": "first"}
        assert "previous_response_id" not in a.posts[2]
        assert a.posts[1]["input"] == [said, message("one"), *second]
        assert a.posts[2]["input"] == [
            said,
            message("one"),
            *second,
            message("two"),
            {"type": "message", "role": "user", "content": "third"},
        ]


async def test_items_that_are_told_one_by_one_alone_are_remembered_too():
    done = {"type": "response.output_item.done", "item": message("one")}
    bare = completed("resp_1")
    bare["response"]["output"] = []
    a = Provider(streams=[[created(), done, bare], whole("resp_2")])
    async with gateway(a, takes=False) as running:
        client = await running.connect()
        await client.turn(create("first", store=False))
        await client.turn(create("second", previous_response_id="resp_1", store=False))

        assert message("one") in a.posts[1]["input"]


async def test_an_id_of_nobody_is_told_without_asking_an_upstream():
    a = Provider(streams=[whole()])
    async with gateway(a, takes=False) as running:
        client = await running.connect()

        (event,) = await client.turn(create(previous_response_id="resp_foreign"))

        assert event["status"] == 400
        assert event["error"]["code"] == "previous_response_not_found"
        assert not a.posts
        assert await client.turn(create()) == whole()


async def test_an_id_that_the_pool_has_seen_goes_where_it_lives():
    a, b = Provider(streams=[]), Provider(streams=[whole()])
    async with gateway(a, b, takes=False) as running:
        running.database.pins.rows["p", PinKind.RESPONSE, "resp_b"] = "p/b"
        client = await running.connect()

        assert await client.turn(create(previous_response_id="resp_b")) == whole()
        assert b.posts[0]["previous_response_id"] == "resp_b"


async def test_an_engine_that_keeps_no_responses_says_so_in_one_code():
    a = Provider(answer=(404, ENGINE_MISS))
    async with gateway(a, takes=False) as running:
        running.database.pins.rows["p", PinKind.RESPONSE, "resp_a"] = "p/a"
        client = await running.connect()

        (event,) = await client.turn(create(previous_response_id="resp_a"))

        assert event["status"] == 400
        assert event["error"]["code"] == "previous_response_not_found"


async def test_beyond_the_bound_the_client_is_asked_for_the_whole_input():
    a = Provider(streams=[whole("resp_1")])
    settings = WebsocketConfig(transcript_bytes=1000)
    async with gateway(a, takes=False, websocket=settings) as running:
        client = await running.connect()
        await client.turn(create("x" * 1000, store=False))

        (event,) = await client.turn(create(previous_response_id="resp_1", store=False))

        assert event["error"]["code"] == "previous_response_not_found"


async def test_the_transcript_is_gone_with_the_socket():
    a = Provider(streams=[whole("resp_1")])
    async with gateway(a, takes=False) as running:
        client = await running.connect()
        await client.turn(create(store=False))
        other = await running.connect()

        (event,) = await other.turn(create(previous_response_id="resp_1", store=False))

        assert event["error"]["code"] == "previous_response_not_found"


# --- warm-ups


@pytest.mark.parametrize("takes", [True, False], ids=["direct", "bridged"])
async def test_a_warm_up_is_answered_here_and_can_be_continued_on(takes):
    a = Provider(turns(whole()), streams=[whole()])
    async with gateway(a, takes=takes) as running:
        client = await running.connect()

        begun, done = await client.turn(create("instructions", generate=False, store=False))
        assert [begun["type"], done["type"]] == ["response.created", "response.completed"]
        assert done["response"]["output"] == []
        assert [*a.frames, *a.posts, *running.rows] == []

        previous = done["response"]["id"]
        events = await client.turn(create("go", previous_response_id=previous, store=False))

        assert events == whole()
        (seen,) = a.frames or a.posts
        assert "previous_response_id" not in seen
        assert "generate" not in seen
        assert [one["content"] for one in seen["input"]] == ["instructions", "go"]


async def test_a_warm_up_on_a_live_upstream_keeps_what_that_knows():
    a = Provider(turns(whole("resp_1"), whole("resp_2")))
    async with gateway(a) as running:
        client = await running.connect()
        await client.turn(create("one"))
        warm = create("two", generate=False, previous_response_id="resp_1")
        previous = (await client.turn(warm))[-1]["response"]["id"]

        await client.turn(create("three", previous_response_id=previous))

        assert a.frames[1]["previous_response_id"] == "resp_1"
        assert [one["content"] for one in a.frames[1]["input"]] == ["two", "three"]


async def test_a_warm_up_for_a_model_that_the_key_may_not_use_is_refused():
    async with gateway(Provider()) as running:
        client = await running.connect()
        running.gateway.keyring = keyring(models=("other",))

        (event,) = await client.turn(create(generate=False))

        assert event["status"] == 403
