"""A request is told to a tracer on every way out, and costs nothing where there is none."""

import asyncio

import pytest

from llmgw.core.errors import GatewayError
from tests.builders import POOL, account, call, node, streaming
from tests.fakes.exchange import JSON, FakeExchange
from tests.fakes.scene import CUT, DONE, HI, REFUSED, ROLE, Scene, answers, streams

THREE = (node("a"), node("b", 8001), node("c", 8002))
PARENT = ("traceparent", "00-" + "1" * 32 + "-" + "2" * 16 + "-01")


class Recorder:
    """A tracer that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def begin(self, call, *, pool, model):
        self.told.append(("begin", pool, model))
        return self

    def attempt(self, candidate, *, ordinal):
        self.told.append(("attempt", ordinal))
        return Span(self, ordinal)

    def handoff(self, reason):
        self.told.append(("handoff", reason))

    def end(self, *, status, attempts, usage, error):
        self.told.append(("end", status, attempts, usage.tokens_in, error))


class Span:
    def __init__(self, recorder, ordinal):
        self._told = recorder.told
        self._ordinal = ordinal
        self.traceparent = f"00-ours-{ordinal}"

    def first_visible(self):
        self._told.append(("first visible", self._ordinal))

    def end(self, *, status, error):
        self._told.append(("attempt ended", self._ordinal, status, error))


def traced(*script, **options) -> tuple[Scene, Recorder]:
    scene, recorder = Scene(*script, **options), Recorder()
    scene.gateway.tracer = recorder
    return scene, recorder


async def test_a_request_that_was_handed_on_is_told_from_begin_to_end():
    scene, recorder = traced(REFUSED, answers(b"no", 503), answers(), upstreams=THREE)

    await scene.serves()

    assert recorder.told == [
        ("begin", "cluster", "m"),
        ("attempt", 1),
        ("attempt ended", 1, None, "connect"),
        ("handoff", "connect"),
        ("attempt", 2),
        ("attempt ended", 2, 503, "status"),
        ("handoff", "status"),
        ("attempt", 3),
        ("attempt ended", 3, 200, None),
        ("end", 200, 3, 3, None),
    ]


async def test_an_attempts_span_ends_with_its_stream():
    scene, recorder = traced(streams(ROLE + HI, HI, DONE))

    await scene.serves(streaming())

    assert recorder.told[1:] == [
        ("attempt", 1),
        ("first visible", 1),
        ("attempt ended", 1, 200, None),
        ("end", 200, 1, None, None),
    ]
    assert scene.settled


async def test_a_stream_that_broke_is_an_attempt_that_failed():
    scene, recorder = traced(streams(ROLE + HI, end=CUT))

    await scene.serves(streaming())

    assert ("attempt ended", 1, 200, "cut") in recorder.told


async def test_a_refusal_without_an_attempt_is_told():
    scene, recorder = traced()

    with pytest.raises(GatewayError):
        await scene.serves(call(b'{"model":"unknown"}'))

    assert recorder.told == [
        ("begin", "cluster", "other"),
        ("end", 503, 0, None, "no_eligible_backend"),
    ]


async def test_a_client_that_leaves_ends_its_spans():
    scene, recorder = traced(FakeExchange(200, JSON, (), hangs=True))
    task = asyncio.ensure_future(scene.serves())
    for _ in range(20):
        await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert recorder.told[2:] == [
        ("attempt ended", 1, None, "cancelled"),
        ("end", 499, 1, None, "cancelled"),
    ]


async def test_nodes_continue_our_trace_and_accounts_hear_nothing_of_it():
    scene, _ = traced(answers())
    await scene.serves(call(headers=(PARENT,)))
    rented, _ = traced(answers(), upstreams=(account("x"),))
    await rented.serves(call(headers=(PARENT,)), pool=POOL)

    assert parents(scene) == ["00-ours-1"]
    assert parents(rented) == []


async def test_without_a_tracer_a_clients_own_trace_passes_to_a_node():
    scene = Scene(answers())

    await scene.serves(call(headers=(PARENT,)))

    assert parents(scene) == [PARENT[1]]


def parents(scene: Scene) -> list[str]:
    [(_, request)] = scene.upstreams.asked
    return [value for name, value in request.headers if name == "traceparent"]
