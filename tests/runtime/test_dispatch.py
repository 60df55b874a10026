"""One request over scripted upstreams: who is tried, what the client gets, what is booked."""

import asyncio

import pytest

from llmgw.core.circuit import CircuitKey
from llmgw.core.config import GatewayConfig, RoutingConfig, StreamsConfig
from llmgw.core.errors import FaultKind, GatewayError, UpstreamError
from llmgw.core.types import AssignmentId, RouteClass
from tests.builders import POOL, account, call, streaming
from tests.fakes.asked import settle
from tests.fakes.downstream import FakeDownstream
from tests.fakes.exchange import JSON, FakeExchange
from tests.fakes.scene import (
    ANSWER,
    CUT,
    DONE,
    HI,
    IN_BAND,
    REFUSED,
    REJECTS,
    RESET,
    ROLE,
    Scene,
    answers,
    streams,
)


async def test_an_answer_passes_and_is_booked():
    scene = Scene(answers())

    client = await scene.serves()

    assert (client.status, client.body, client.ending) == (200, ANSWER, "whole")
    assert scene.outcomes == ["succeeded"]
    assert scene.row.usage.tokens_in == 3
    assert scene.watch.statuses == [200]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(REFUSED, id="no connection"),
        pytest.param(RESET, id="reset before any byte"),
        pytest.param(answers(b"no", 503), id="503"),
        pytest.param(answers(b"busy", 429), id="full"),
        pytest.param(answers(REJECTS, 400), id="rejects the model"),
        pytest.param(answers(REJECTS), id="an error under 200"),
        pytest.param(answers(b"<html>"), id="no JSON where JSON was said"),
        pytest.param(FakeExchange(200, JSON, (b'{"a"',), CUT), id="cut short"),
        pytest.param(FakeExchange(307, ()), id="a redirect"),
    ],
)
async def test_another_candidate_serves_while_the_client_has_seen_nothing(first):
    scene = Scene(first, answers())

    client = await scene.serves()

    assert (client.status, client.body) == (200, ANSWER)
    assert len(set(scene.upstreams.names)) == 2
    assert scene.outcomes == ["retryable_failed", "succeeded"]
    assert scene.row.retry_count == 1


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(streams(ROLE, IN_BAND), id="an error in band"),
        pytest.param(streams(ROLE), id="no visible event"),
        pytest.param(streams(ROLE, end=CUT), id="cut after the role"),
        pytest.param(answers(b"no", 500), id="an error status"),
    ],
)
async def test_a_dropped_stream_leaves_no_byte(first):
    scene = Scene(first, streams(ROLE + HI, DONE))

    client = await scene.serves(streaming())

    assert client.body == ROLE + HI + DONE
    assert client.ending == "whole"
    assert scene.outcomes == ["retryable_failed", "succeeded"]


async def test_nothing_is_retried_after_visible_output():
    scene = Scene(streams(HI, end=CUT), streams(HI, DONE))

    client = await scene.serves(streaming())

    assert client.body.startswith(HI)
    assert client.body.count(b'"error"') == 1
    assert b"[DONE]" not in client.body
    assert client.ending == "whole, closed"
    assert scene.outcomes == ["failed"]
    assert len(scene.upstreams.asked) == 1


async def test_inside_a_broken_event_nothing_more_is_said():
    scene = Scene(streams(HI, b'data: {"choi', end=CUT))

    client = await scene.serves(streaming())

    assert client.body == HI + b'data: {"choi'
    assert client.ending == "cut"


async def test_an_error_of_the_upstream_after_visible_output_passes_and_counts():
    scene = Scene(streams(HI, IN_BAND))

    client = await scene.serves(streaming())

    assert client.body == HI + IN_BAND
    assert scene.outcomes == ["failed"]


async def test_the_last_failure_is_the_answer():
    scene = Scene(answers(b'{"error":{"code":"x"}}', 503), answers(b'{"error":{"code":"y"}}', 502))

    client = await scene.serves()

    assert (client.status, client.body) == (502, b'{"error":{"code":"y"}}')
    assert scene.outcomes == ["retryable_failed", "failed"]


async def test_a_clients_own_fault_ends_at_the_first():
    scene = Scene(answers(b'{"error":{"code":"context_length_exceeded"}}', 400), answers())

    client = await scene.serves()

    assert client.status == 400
    assert scene.outcomes == ["failed"]
    assert len(scene.upstreams.asked) == 1


async def test_where_nobody_can_be_reached_the_gateway_says_so():
    scene = Scene(REFUSED, REFUSED)

    client = await scene.serves()

    assert client.status == 503
    assert b"no_reachable_backend" in client.body
    assert sorted(scene.watch.unreached) == ["a", "b"]


async def test_a_404_that_no_shape_explains_asks_the_list_once():
    scene = Scene(answers(b'{"error":{"message":"?"}}', 404), answers())
    scene.watch.gone = True

    client = await scene.serves()

    assert client.status == 200
    assert scene.watch.asked == 1


async def test_without_the_recheck_such_a_404_is_the_answer():
    scene = Scene(
        answers(b'{"error":{"message":"?"}}', 404), routing=RoutingConfig(recheck_404=False)
    )
    scene.watch.gone = True

    client = await scene.serves()

    assert client.status == 404
    assert scene.watch.asked == 0


async def test_compact_moves_on_for_a_connection_that_could_not_be_made_and_for_nothing_else():
    path = "/v1/responses/compact"
    moves, stays = Scene(REFUSED, answers()), Scene(answers(REJECTS, 404), answers())

    assert (await moves.serves(call(path=path))).status == 200
    assert (await stays.serves(call(path=path))).status == 404


async def test_an_accounts_words_are_not_shown():
    scene = Scene(answers(REJECTS, 404), upstreams=(account("x"),))

    client = await scene.serves(pool=POOL)

    assert client.status == 404
    assert b"SECRET" not in client.body
    assert b"model_not_found" in client.body


async def test_nothing_eligible_is_refused_before_any_upstream():
    scene = Scene()

    with pytest.raises(GatewayError) as caught:
        await scene.serves(call(b'{"model":"other"}'))

    assert (caught.value.status, caught.value.code) == (503, "no_eligible_backend")
    assert scene.upstreams.asked == []
    assert scene.settled == []


async def test_failures_in_a_row_open_the_circuit_and_one_probe_goes_through():
    scene = Scene(*(answers(REJECTS, 404) for _ in range(3)), upstreams=(account("x"),))
    for _ in range(3):
        scene.client = FakeDownstream()
        await scene.serves(pool=POOL)

    with pytest.raises(GatewayError) as caught:
        await scene.serves(pool=POOL)

    key = CircuitKey(POOL, AssignmentId("p/x"), "m", RouteClass.HTTP)
    assert caught.value.code == "no_eligible_backend"
    assert scene.gateway.board.circuit(key).state == "open"


async def test_the_first_event_timeout_moves_on_and_is_off_for_the_last():
    limits = StreamsConfig(first_event_timeout=0.01)
    scene = Scene(streams(ROLE, hangs=True), streams(HI, DONE), streams=limits)

    client = await scene.serves(streaming())

    assert client.body == HI + DONE
    assert scene.settled == [[("retryable_failed", "upstream_timeout"), ("succeeded", None)]]


async def test_a_node_found_dead_frees_who_waits_for_its_first_byte():
    scene = Scene(None, answers())
    task = asyncio.create_task(scene.serves())
    await asyncio.sleep(0)

    scene.upstreams.fail(UpstreamError(FaultKind.DEAD))
    client = await task

    assert client.status == 200
    assert scene.outcomes == ["retryable_failed", "succeeded"]


async def test_after_the_early_commit_the_attempt_can_still_be_replaced():
    scene = Scene(
        streams(ROLE, hangs=True),
        streams(HI, DONE),
        streams=StreamsConfig(first_event_timeout=0.05, commit_after=0.0),
    )
    task = asyncio.create_task(scene.serves(streaming()))
    await asyncio.sleep(0)

    scene.gateway.wheel.turn()
    assert scene.client.status == 200
    await task

    assert scene.client.body == HI + DONE


async def test_a_failure_after_the_early_commit_is_one_error_event():
    scene = Scene(
        streams(ROLE, hangs=True),
        answers(b'{"error":{"code":"context_length_exceeded"}}', 400),
        streams=StreamsConfig(first_event_timeout=0.05, commit_after=0.0),
    )
    task = asyncio.create_task(scene.serves(streaming()))
    await asyncio.sleep(0)
    scene.gateway.wheel.turn()

    await task

    assert scene.client.body.startswith(b"data: {")
    assert b"context_length_exceeded" in scene.client.body
    assert scene.client.ending == "whole, closed"


@pytest.mark.parametrize("visible", [True, False], ids=["after output", "before output"])
async def test_a_client_that_leaves_ends_the_upstream_call_and_is_no_failure(visible):
    exchange = streams(HI if visible else ROLE, hangs=True)
    scene = Scene(exchange)
    task = asyncio.create_task(scene.serves(streaming()))
    await settle()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert exchange.aborted
    assert scene.outcomes == ["cancelled"]
    assert scene.registry.in_flight(scene.config.nodes[0]) == 0
    assert scene.gateway.board.view() == {}


async def test_a_large_answer_is_passed_through_and_a_cut_in_it_is_told():
    limits = GatewayConfig(max_buffered_response_bytes=4)
    whole = Scene(FakeExchange(200, JSON, (b"[12345", b"]")), gateway=limits)
    short = Scene(FakeExchange(200, JSON, (b"[12345",), CUT), answers(), gateway=limits)

    assert (await whole.serves()).body == b"[12345]"
    assert (await short.serves()).ending == "cut"
    assert short.outcomes == ["failed"]


async def test_a_key_that_may_see_attempts_is_told_how_many():
    scene = Scene(REFUSED, answers())

    client = await scene.serves(explain=True)

    assert client.header("x-llmgw-attempts") == "2"


async def test_a_gateway_without_descriptors_takes_nothing_from_its_nodes():
    scene = Scene(*(UpstreamError(FaultKind.EXHAUSTED) for _ in range(8)))
    for _ in range(4):
        scene.client = FakeDownstream()
        client = await scene.serves()
        assert client.status == 503

    assert scene.watch.unreached == []
    assert not scene.gateway.board.view()
    assert scene.settled[-1] == [
        ("retryable_failed", "gateway_exhausted"),
        ("failed", "gateway_exhausted"),
    ]
