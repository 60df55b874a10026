"""One try: what goes up, what comes back, and that nothing stays open."""

import asyncio
import zlib

import pytest

from llmgw.core.config import RoutingConfig, StreamsConfig
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.health import Failed
from tests.builders import account, call, node, streaming
from tests.fakes.events import DONE, HELLO, ROLE
from tests.fakes.exchange import JSON, SSE, FakeExchange
from tests.fakes.patience import until
from tests.fakes.scene import ANSWER, CUT, Scene, answers, streams

A = node("a")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_body_goes_up_as_the_client_sent_it_with_the_nodes_own_headers():
    body = b'{ "model" :"m", "x":  1e400 }'
    scene = Scene(answers(), upstreams=(node("a", credential=(("authorization", "Bearer n"),)),))

    await scene.serves(call(body, headers=(("authorization", "Bearer client"),)))

    (_, sent), *_ = scene.upstreams.asked
    assert (sent.method, sent.target, sent.body) == ("POST", "/v1/chat/completions", body)
    assert ("authorization", "Bearer n") in sent.headers
    assert ("authorization", "Bearer client") not in sent.headers


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(answers(), id="an answer"),
        pytest.param(answers(b"{}", 500), id="an error status"),
        pytest.param(FakeExchange(302, ()), id="a redirect"),
        pytest.param(streams(ROLE), id="an empty stream"),
        pytest.param(
            FakeExchange(200, (*JSON, ("content-encoding", "?")), (b"x",)), id="a coding"
        ),
    ],
)
async def test_whatever_comes_the_exchange_is_ended_and_the_place_given_back(reply):
    scene = Scene(reply, upstreams=(A,))

    await scene.serves()

    assert reply.aborted
    assert scene.registry.in_flight(A) == 0


async def test_an_attempt_counts_as_long_as_its_stream_runs():
    exchange = streams(HELLO, hangs=True)
    scene = Scene(exchange, upstreams=(A,))
    task = asyncio.create_task(scene.serves(streaming()))
    await settle()
    assert scene.registry.in_flight(A) == 1

    exchange.push(DONE)
    exchange.sink.end(None)
    await task

    assert scene.registry.in_flight(A) == 0


async def test_a_redirect_is_never_followed():
    scene = Scene(FakeExchange(307, (("location", "http://elsewhere/"),)), upstreams=(A,))

    client = await scene.serves()

    assert client.status == 502
    assert client.header("location") is None
    assert len(scene.upstreams.asked) == 1


async def test_a_node_that_is_found_dead_frees_an_attempt_without_a_byte():
    scene = Scene(None, answers())
    first = asyncio.create_task(scene.serves())
    await settle()
    name, _ = scene.upstreams.asked[0]
    stuck = next(one for one in scene.config.nodes if one.name == name)

    for _ in range(3):
        scene.registry.health_event(stuck, Failed(connection=True))
    await first

    assert (scene.client.status, scene.client.body) == (200, ANSWER)
    assert scene.settled == [[("retryable_failed", "upstream_unreachable"), ("succeeded", None)]]


@pytest.mark.parametrize("is_last", [False, True], ids=["others are left", "the last"])
async def test_the_first_event_timeout_ends_an_attempt_only_where_another_may_follow(is_last):
    limits = StreamsConfig(first_event_timeout=0.01)
    nodes = (A,) if is_last else (A, node("b", 8001))
    hung = streams(ROLE, hangs=True)
    scene = Scene(hung, streams(HELLO, DONE), upstreams=nodes, streams=limits)
    task = asyncio.create_task(scene.serves(streaming()))
    if is_last:
        await asyncio.sleep(0.03)
    else:
        await until(task.done)

    assert hung.aborted is not is_last
    assert task.done() is not is_last
    task.cancel()


async def test_the_first_event_timeout_is_for_streams_alone():
    scene = Scene(None, answers(), streams=StreamsConfig(first_event_timeout=0.01))
    task = asyncio.create_task(scene.serves())
    await asyncio.sleep(0.03)

    assert not task.done()
    task.cancel()


async def test_once_output_is_visible_the_first_event_timeout_is_over():
    exchange = streams(HELLO, hangs=True)
    scene = Scene(exchange, answers(), streams=StreamsConfig(first_event_timeout=0.01))
    task = asyncio.create_task(scene.serves(streaming()))
    await asyncio.sleep(0.03)

    exchange.push(DONE)
    exchange.sink.end(None)
    await task

    assert scene.client.body == HELLO + DONE
    assert scene.outcomes == ["succeeded"]


async def test_limits_of_the_configuration_go_down_with_the_call():
    seen = {}
    scene = Scene(answers(), routing=RoutingConfig(connect_timeout=1.5, header_timeout=2.5))
    opened = scene.upstreams.open

    async def kept(upstream, request, **limits):
        seen.update(limits)
        return await opened(upstream, request, **limits)

    scene.upstreams.open = kept
    await scene.serves()

    assert (seen["connect_timeout"], seen["header_timeout"]) == (1.5, 2.5)


async def test_a_stream_that_comes_encoded_is_relayed_plain():
    coder = zlib.compressobj(wbits=31)
    packed = coder.compress(ROLE + HELLO + DONE) + coder.flush()
    scene = Scene(FakeExchange(200, (*SSE, ("content-encoding", "gzip")), (packed,)))

    client = await scene.serves(streaming())

    assert client.body == ROLE + HELLO + DONE
    assert client.header("content-encoding") is None


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(CUT, id="cut"),
        pytest.param(UpstreamError(FaultKind.TIMEOUT), id="a timeout"),
        pytest.param(UpstreamError(FaultKind.INVALID), id="broken framing"),
    ],
)
async def test_an_error_answer_that_never_ends_is_no_answer(end):
    scene = Scene(FakeExchange(404, JSON, (b'{"err',), end), answers())

    client = await scene.serves()

    assert client.status == 200
    assert scene.outcomes == ["retryable_failed", "succeeded"]


async def test_an_attempt_on_an_account_uses_its_credential_and_not_our_request_id():
    acct = account("x", credential=(("x-api-key", "own"),))
    scene = Scene(answers(), upstreams=(acct,))

    await scene.serves(pool="p")

    (_, sent), *_ = scene.upstreams.asked
    names = dict(sent.headers)
    assert names["x-api-key"] == "own"
    assert "x-request-id" not in names
