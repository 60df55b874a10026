"""Responses websockets whose upstreams take websockets too."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import WSMsgType, WSServerHandshakeError

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import RoutingConfig, StreamsConfig, WebsocketConfig
from llmgw.core.pins import PinKind
from llmgw.core.policy import KeyRing
from llmgw.core.types import RouteClass
from llmgw.observe.metrics import OPEN_WEBSOCKETS, REQUESTS, child
from tests.fakes.live import (
    MODEL_NOT_FOUND,
    TOKEN,
    Provider,
    completed,
    create,
    created,
    delta,
    error,
    gateway,
    keyring,
    turns,
    whole,
)
from tests.fakes.patience import at_rest, until


async def test_a_second_assignment_serves_within_one_client_connection():
    a = Provider(turns([MODEL_NOT_FOUND]))
    b = Provider(turns(whole("resp_b")))
    async with gateway(a, b) as running:
        client = await running.connect()

        events = await client.turn(create())

        assert events == whole("resp_b")
        assert a.frames == b.frames == [create()]
        assert running.attempts == [
            [
                ("p/a", "retryable_failed", "upstream_model_unavailable"),
                ("p/b", "succeeded", None),
            ]
        ]
        assert running.rows[0].lane is RouteClass.WEBSOCKET
        assert running.rows[0].usage.tokens_out == 2
        assert await client.is_quiet()


async def test_the_frame_goes_out_again_byte_for_byte_and_withheld_frames_are_dropped():
    a = Provider(turns([created("resp_a"), MODEL_NOT_FOUND]))
    b = Provider(turns(whole("resp_b")))
    async with gateway(a, b) as running:
        client = await running.connect()
        await client.send('{ "type":"response.create",  "model":"m1","input":"\\u00e9", "x":1.50}')

        assert [await client.receive() for _ in range(3)] == whole("resp_b")
        assert b.frames == [{"type": "response.create", "model": "m1", "input": "é", "x": 1.5}]


async def hangs_up(provider, ws):
    await provider.heard(ws)
    ws._req.transport.abort()


async def refuses(provider, ws):
    raise AssertionError("nobody may be asked")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        pytest.param(turns([error(503, code="x")]), "upstream_error", id="an error frame of 503"),
        pytest.param(turns([error(429, type="usage")]), "upstream_full", id="full"),
        pytest.param(turns([error(401, type="x")]), "upstream_unauthorized", id="credential"),
        pytest.param(hangs_up, "upstream_unreachable", id="lost before any frame"),
        pytest.param(
            turns([created(), {"type": "response.failed", "response": {"error": {"code": "x"}}}]),
            "upstream_error",
            id="response.failed",
        ),
        pytest.param(
            turns([error(None, type="invalid_request_error", param="model")]),
            "upstream_model_unavailable",
            id="codeless, with provenance",
        ),
    ],
)
async def test_a_turn_moves_on_before_anything_is_visible(first, reason):
    a, b = Provider(first), Provider(turns(whole("resp_b")))
    async with gateway(a, b) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert running.attempts == [
            [("p/a", "retryable_failed", reason), ("p/b", "succeeded", None)]
        ]


@pytest.mark.parametrize("status", [401, 429, 500, 502, 503])
async def test_a_refused_handshake_moves_on(status):
    a, b = Provider(refuses=status), Provider(turns(whole("resp_b")))
    async with gateway(a, b) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_b")
        assert [len(a.upgrades), len(a.posts)] == [1, 0]


async def test_nothing_moves_after_visible_output():
    a = Provider(turns([created(), delta("h"), MODEL_NOT_FOUND]))
    b = Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()

        events = await client.turn(create())

        assert events == [created(), delta("h"), MODEL_NOT_FOUND]
        assert [one[0][1] for one in running.attempts] == ["failed"]
        assert not b.upgrades


async def test_a_generic_404_is_the_answer():
    a, b = Provider(turns([error(404, type="x", param="tools")])), Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert (event["type"], event["status"]) == ("error", 404)
        assert "RAW-CANARY" not in json.dumps(event), "an account's words stay here"
        assert not b.upgrades


async def test_a_codeless_miss_without_provenance_is_the_answer():
    a = Provider(turns([error(404, type="invalid_request_error", param="model")]))
    b = Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()
        frame = {**create(), "model": "m2"}  # which nobody has configured or listed

        (event,) = await client.turn(frame)

        assert event["status"] == 404
        assert not b.upgrades


async def test_the_last_candidates_failure_is_the_answer_and_the_socket_stays_open():
    a = Provider(turns([MODEL_NOT_FOUND]), turns(whole()))
    async with gateway(a) as running:
        client = await running.connect()

        (event,) = await client.turn(create())
        again = await client.turn(create())

        assert (event["type"], event["status"]) == ("error", 400)
        assert event["error"]["code"] == "model_not_found"
        assert again == whole()
        assert [one[0][1] for one in running.attempts] == ["failed", "succeeded"]


async def test_an_exhausted_plan_asks_nobody_else():
    a, b, c = (Provider(turns([MODEL_NOT_FOUND])) for _ in range(3))
    async with gateway(a, b, c, routing=RoutingConfig(plan_size=2)) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert event["error"]["code"] == "model_not_found"
        assert [len(one.upgrades) for one in (a, b, c)] == [1, 1, 0]


async def test_a_live_upstream_is_never_left():
    a = Provider(turns(whole("resp_1"), [MODEL_NOT_FOUND], whole("resp_3")))
    b = Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()

        first = await client.turn(create())
        second = await client.turn(create())
        third = await client.turn(create())

        assert [one[-1]["type"] for one in (first, second, third)] == [
            "response.completed",
            "error",
            "response.completed",
        ]
        assert (len(a.upgrades), len(b.upgrades)) == (1, 0)
        assert [len(one) for one in running.attempts] == [1, 1, 1]


async def test_a_live_upstream_that_is_lost_inside_a_turn_is_not_left_either():
    async def serves_once(provider, ws):
        await provider.heard(ws)
        for event in whole():
            await ws.send_str(json.dumps(event))
        await hangs_up(provider, ws)

    a, b = Provider(serves_once), Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()
        await client.turn(create())

        (event,) = await client.turn(create())

        assert event["status"] == 503
        assert event["error"]["code"] == "pinned_assignment_unavailable"
        assert not b.upgrades
        assert not client.socket.closed


async def test_after_an_idle_end_the_next_turn_goes_to_the_same_assignment():
    async def serves_once(provider, ws):
        await provider.heard(ws)
        for event in whole():
            await ws.send_str(json.dumps(event))
        await ws.close(code=1001)

    a, b = Provider(serves_once, turns(whole("resp_2"))), Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()
        await client.turn(create())
        await until(a.left.is_set)
        await until(lambda: len(running.sockets) == 0)

        assert await client.turn(create()) == whole("resp_2")
        assert (len(a.upgrades), len(b.upgrades)) == (2, 0)


async def test_a_turn_of_an_assignment_that_cannot_serve_any_more_fails_and_stays():
    a, b = Provider(turns(whole())), Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()
        await client.turn(create())
        key = CircuitKey("p", "p/a", "m1", RouteClass.WEBSOCKET)
        for _ in range(3):
            running.gateway.board.advance(key, Failed("x", None))

        (event,) = await client.turn(create())

        assert event["error"]["code"] == "pinned_assignment_unavailable"
        assert not b.upgrades


async def test_a_file_that_lives_elsewhere_pins_the_first_turn():
    a, b = Provider(refuses), Provider(turns([MODEL_NOT_FOUND]))
    async with gateway(a, b) as running:
        running.database.pins.rows["p", PinKind.FILE, "file_1"] = "p/b"
        client = await running.connect()
        content = [{"type": "input_file", "file_id": "file_1"}]
        frame = {**create(), "input": [{"role": "user", "content": content}]}

        (event,) = await client.turn(frame)

        assert event["error"]["code"] == "model_not_found"
        assert (len(a.upgrades), len(b.upgrades)) == (0, 1)


async def test_a_response_of_a_websocket_pins_what_continues_on_it_elsewhere():
    a = Provider(turns(whole("resp_77")))
    async with gateway(a) as running:
        await (await running.connect()).turn(create())

        assert running.database.pins.rows["p", PinKind.RESPONSE, "resp_77"] == "p/a"


async def test_late_events_of_a_settled_turn_never_reach_the_next():
    async def late(provider, ws):
        await provider.heard(ws)
        for event in [*whole("resp_1"), delta("late")]:
            await ws.send_str(json.dumps(event))
        await provider.heard(ws)
        for event in [delta("later"), completed("resp_1"), *whole("resp_2"), delta("after")]:
            await ws.send_str(json.dumps(event))
        await provider.heard(ws)

    async with gateway(Provider(late)) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole("resp_1")
        assert await client.is_quiet()
        client = await running.connect()
        assert await client.turn(create()) == whole("resp_1")
        assert await client.turn(create()) == whole("resp_2")


async def test_frames_that_come_early_wait_for_their_turn():
    a = Provider(turns(whole("resp_1"), whole("resp_2"), whole("resp_3")))
    async with gateway(a) as running:
        client = await running.connect()
        for text in "abc":
            await client.send(create(text))

        events = [await client.receive() for _ in range(9)]

        assert events == [*whole("resp_1"), *whole("resp_2"), *whole("resp_3")]
        assert [frame["input"] for frame in a.frames] == ["a", "b", "c"]


async def test_a_nested_response_is_taken_too_and_the_default_model_is_put_in():
    a = Provider(turns(whole(), whole("resp_2")))
    async with gateway(a, default="m1") as running:
        client = await running.connect()

        await client.turn({"type": "response.create", "response": {"input": "hi"}})
        await client.turn({"type": "response.create", "input": "ho"})

        assert a.frames == [
            {"type": "response.create", "response": {"model": "m1", "input": "hi"}},
            {"type": "response.create", "model": "m1", "input": "ho"},
        ]


@pytest.mark.parametrize(
    ("frame", "status"),
    [
        pytest.param('{"type":', 400, id="no JSON"),
        pytest.param("[]", 400, id="no object"),
        pytest.param('{"type":"session.update"}', 400, id="another type"),
        pytest.param('{"type":"response.create","input":"x"}', 400, id="no model"),
        pytest.param('{"type":"response.create","model":7}', 400, id="no text as model"),
        pytest.param('{"type":"response.create","model":"a","Model":"b"}', 400, id="two models"),
    ],
)
async def test_a_frame_that_cannot_be_served_is_an_error_frame(frame, status):
    a = Provider(turns(whole()))
    async with gateway(a) as running:
        client = await running.connect()
        await client.send(frame)

        event = await client.receive()

        assert (event["type"], event["status"]) == ("error", status)
        assert await client.turn(create()) == whole()


async def test_an_acknowledgement_is_not_answered():
    async with gateway(Provider(turns(whole()))) as running:
        client = await running.connect()
        await client.send({"type": "response.processed", "response_id": "resp_1"})

        assert await client.turn(create()) == whole()


async def test_binary_closes_with_1003():
    async with gateway(Provider(refuses)) as running:
        client = await running.connect()
        await client.socket.send_bytes(b"\x00")

        assert await client.closed() == 1003


async def test_a_message_over_the_limit_closes_with_1009():
    a = Provider(turns(whole()))
    room = 1000 - len(json.dumps(create("")))
    async with gateway(a, websocket=WebsocketConfig(max_frame_bytes=1000)) as running:
        fitting, too_long = await running.connect(), await running.connect()

        await too_long.send(create("x" * (room + 1)))

        assert await fitting.turn(create("x" * room)) == whole()
        assert await too_long.closed() == 1009


async def test_an_upstream_that_finds_the_frame_too_large_fails_the_turn_alone():
    async def too_big(provider, ws):
        await provider.heard(ws)
        await ws.close(code=1009)

    a, b = Provider(too_big), Provider(refuses)
    async with gateway(a, b) as running:
        client = await running.connect()

        (event,) = await client.turn(create())

        assert event["status"] == 413
        assert await client.is_quiet()
        assert not b.upgrades


async def test_silence_after_visible_output_ends_the_turn_with_504():
    a = Provider(turns([created(), delta("h")]))
    async with gateway(a, streams=StreamsConfig(idle_timeout=0.05)) as running:
        client = await running.connect()

        events = await client.turn(create())

        assert events[-1]["status"] == 504
        assert [one[0][2] for one in running.attempts] == ["upstream_idle"]
        await until(a.left.is_set)


async def test_a_silent_candidate_is_left_after_the_first_event_timeout():
    a, b = Provider(turns([])), Provider(turns(whole()))
    async with gateway(a, b, streams=StreamsConfig(first_event_timeout=0.05)) as running:
        client = await running.connect()

        assert await client.turn(create()) == whole()
        assert running.attempts[0][0] == ("p/a", "retryable_failed", "upstream_timeout")


async def test_a_client_that_leaves_ends_the_upstream_call():
    a = Provider(turns([created(), delta("h")]))
    async with gateway(a) as running:
        client = await running.connect()
        await client.send(create())
        await client.receive()

        await client.close()

        await until(a.left.is_set)
        await until(lambda: running.attempts)
        assert running.attempts == [[("p/a", "cancelled", None)]]
        assert running.rows[0].status == 499


# --- who may, and for how long


async def test_a_wrong_key_is_refused_before_the_upgrade():
    async with gateway(Provider(refuses)) as running:
        with pytest.raises(WSServerHandshakeError) as refused:
            await running.connect(token="wrong")

        assert refused.value.status == 401


async def test_a_get_without_an_upgrade_is_told_what_is_taken():
    async with gateway(Provider(refuses)) as running:
        url = f"http://127.0.0.1:{running.port}/v1/responses"
        answer = await running.session.get(url)

        assert answer.status == 405
        assert answer.headers["allow"] == "OPTIONS, POST"


async def test_a_browser_offers_its_key_as_a_subprotocol_that_is_never_echoed():
    a = Provider(turns(whole()))
    async with gateway(a) as running:
        offered = ("realtime", f"openai-insecure-api-key.{TOKEN}")
        client = await running.connect(token=None, protocols=offered)
        alone = await running.connect(token=None, protocols=offered[1:])

        await client.turn(create())

        assert client.socket.protocol == "realtime"
        assert alone.socket.protocol is None
        assert "CANARY-token" not in json.dumps(a.upgrades)


async def test_an_upstream_gets_its_own_credential_and_none_of_the_clients_handshake():
    a = Provider(turns(whole()))
    async with gateway(a) as running:
        client = await running.connect("/v1/responses?x=1", headers={"openai-beta": "b=v2"})

        await client.turn(create())

        (seen,) = a.upgrades
        assert seen["authorization"] == "Bearer up-CANARY-a"
        assert seen["openai-beta"] == "b=v2"
        assert seen["via"] == "1.1 llmgw-abc123"
        assert "sec-websocket-protocol" not in seen
        assert "sec-websocket-extensions" not in seen
        assert a.targets == ["/v1/responses?x=1"]


async def test_a_revoked_key_closes_an_idle_socket_with_1008():
    async with gateway(Provider(turns(whole()))) as running:
        client = await running.connect()
        await client.turn(create())

        running.gateway.keyring = KeyRing({})

        assert await client.closed() == 1008


async def test_a_key_that_is_revoked_inside_a_turn_ends_the_socket_after_it():
    go_on = asyncio.Event()

    async def slow(provider, ws):
        await provider.heard(ws)
        await ws.send_str(json.dumps(delta("h")))
        await ws.send_str(json.dumps(created()))
        await go_on.wait()
        await ws.send_str(json.dumps(completed()))
        await provider.heard(ws)

    async with gateway(Provider(slow)) as running:
        client = await running.connect()
        await client.send(create())
        await client.receive()
        await client.receive()

        running.gateway.keyring = keyring("another")
        assert await client.is_quiet()
        go_on.set()

        assert (await client.receive())["type"] == "response.completed"
        assert await client.closed() == 1008


async def test_a_drain_closes_with_1001_after_the_running_turn():
    go_on = asyncio.Event()

    async def slow(provider, ws):
        await provider.heard(ws)
        await ws.send_str(json.dumps(delta("h")))
        await go_on.wait()
        await ws.send_str(json.dumps(completed()))
        await provider.heard(ws)

    async with gateway(Provider(slow)) as running:
        idle, busy = await running.connect(), await running.connect()
        await busy.send(create())
        await busy.receive()

        running.draining = True

        assert await idle.closed() == 1001
        assert await busy.is_quiet()
        go_on.set()
        assert (await busy.receive())["type"] == "response.completed"
        assert await busy.closed() == 1001


async def test_pings_are_answered_while_a_turn_runs():
    async with gateway(Provider(turns([created(), delta("h")]))) as running:
        client = await running.connect(autoping=False)
        await client.send(create())
        await client.receive()
        await client.receive()

        await client.socket.ping(b"are you there")

        found = await client.socket.receive()
        assert (found.type, found.data) == (WSMsgType.PONG, b"are you there")


async def test_a_slow_client_stops_the_reading_of_its_upstream():
    sent = 0

    async def flood(provider, ws):
        nonlocal sent
        await provider.heard(ws)
        for _ in range(400):
            await ws.send_str(json.dumps(delta("x" * 65536)))
            sent += 1
        await ws.send_str(json.dumps(completed()))
        await provider.heard(ws)

    async with gateway(Provider(flood)) as running:
        client = await running.connect()
        client.socket._response.connection.transport.pause_reading()
        await client.send(create())
        await until(lambda: sent > 20)
        assert await at_rest(lambda: sent) < 400

        client.socket._response.connection.transport.resume_reading()
        for _ in range(400):
            assert (await client.receive())["type"] == "response.output_text.delta"
        assert (await client.receive())["type"] == "response.completed"


async def test_each_turn_is_a_request_in_the_counters():
    async with gateway(Provider(turns(whole(), [MODEL_NOT_FOUND]))) as running:
        before = {status: counted("m1", status) for status in ("200", "400")}
        client = await running.connect()

        await client.turn(create())
        await client.turn(create())

        await until(lambda: counted("m1", "400") == before["400"] + 1)
        assert counted("m1", "200") == before["200"] + 1
        assert [row.status for row in running.rows] == [200, 400]


async def test_coming_and_going_leaves_nothing_behind():
    async with gateway(Provider(turns(whole()))) as running:
        for at in range(60):
            client = await running.connect()
            await client.turn(create())
            if at % 2:
                await client.close()
            else:
                client.socket._response.connection.transport.abort()

        await until(lambda: len(running.sockets) == 0)
        await until(lambda: running.server.connections == 0)
        assert len(running.gateway.wheel) == 0
        assert OPEN_WEBSOCKETS._value.get() == 0
        assert running.gateway.registry.in_flight(running.config.accounts[0]) == 0


def counted(model: str, status: str) -> float:
    return child(REQUESTS, model, status)._value.get()
