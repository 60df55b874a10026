"""One request that callbacks carry: told once when it is over, or handed over, and counted once.

That it is what the loop would have made of it is for `tests/web/test_both_ways.py`.
"""

import asyncio

import pytest

from llmgw.core.failover import Outcome
from llmgw.core.usage import Usage
from llmgw.runtime.express import Express
from tests.builders import call, streaming
from tests.fakes.asking import FakeAsked
from tests.fakes.patience import until
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, chunk, json_answer
from tests.fakes.two_ways import ground

BODY = b'{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}'
HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
REFUSAL = json_answer(b'{"error":{"message":"no"}}', status=500)


def document():
    return FakeAsked(call(b'{"model":"m1","messages":[]}'))


def stream():
    return FakeAsked(call(b'{"model":"m1","stream":true}'))


async def waits(peer):
    await peer.left()


def tried(one):
    ((settlement, _),) = one.database.requests.recorded
    return [(it.assignment, it.outcome, it.status) for it in settlement.attempts]


async def test_while_it_runs_it_counts_and_says_whose_it_is():
    async with ground(False, a=[waits]) as one:
        made = document()
        carried = Express(one.gateway).begin(made)

        assert set(one.running) == {
            "a",
            "a watched",
            "young",
            "gateway_in_flight_requests[]",
            "gateway_assignment_in_flight_requests[('assignment', 'cluster/a')]",
        }
        assert (carried.label, carried.assignment) == ("m1", "cluster/a")
        assert (carried.scope.request_id, carried.scope.model) == ("req_1", "m1")
        assert carried.client.name == "tester"
        assert carried.started == pytest.approx(one.gateway.board.wall(), abs=60)

        carried.leave()

        assert not one.running
        assert tried(one) == [("cluster/a", Outcome.CANCELLED, None)]
        assert not made.ended.is_set()
        assert not made.handed_over.is_set()


async def test_a_document_is_answered_and_settled_in_one_step():
    async with ground(False, a=[json_answer(BODY)]) as one:
        made = document()
        carried = Express(one.gateway).begin(made)
        await made.ended.wait()

        assert not one.running
        assert (made.downstream.status, made.downstream.body) == (200, BODY)
        assert made.downstream.header("content-type") == "application/json"
        assert tried(one) == [("cluster/a", Outcome.SUCCEEDED, 200)]
        assert one.rows[0].usage == Usage(3, 2)
        assert carried.errand is None
        assert carried.overhead > 0


async def test_a_stream_is_relayed_as_it_comes():
    gate = asyncio.Event()

    async def play(peer):
        await peer.send(CHUNKED + chunk(HI))
        await gate.wait()
        await peer.send(chunk(DONE) + LAST_CHUNK)

    async with ground(False, a=[play]) as one:
        made = stream()
        carried = Express(one.gateway).begin(made)
        await until(lambda: made.downstream.body)

        assert made.downstream.body == HI
        assert one.running["gateway_open_streams[]"] == 1
        assert not made.ended.is_set()
        gate.set()
        await made.ended.wait()

        assert (made.downstream.body, made.downstream.ending) == (HI + DONE, "whole")
        await until(lambda: not one.running)
        assert one.database.requests.recorded[0][0].first_event > 0
        assert carried.errand.journey.attempts == 1


async def test_a_client_that_leaves_its_stream_ends_it_upstream():
    async with ground(False, a=[lambda peer: played(peer)]) as one:

        async def played(peer):
            await peer.send(CHUNKED + chunk(HI))
            await waits(peer)

        made = stream()
        carried = Express(one.gateway).begin(made)
        await until(lambda: made.downstream.body)

        carried.leave()

        assert not one.running
        assert tried(one) == [("cluster/a", Outcome.CANCELLED, None)]
        await until(lambda: one.nodes["a"].peers[0].over.is_set())


async def test_what_is_no_success_is_handed_over_and_goes_on_with_the_next():
    async with ground(False, a=[REFUSAL], b=[json_answer(BODY)]) as one:
        made = document()
        carried = Express(one.gateway).begin(made)
        await made.handed_over.wait()

        assert one.running["gateway_in_flight_requests[]"] == 1
        await carried.go_on()

        assert not one.running
        assert made.downstream.body == BODY
        assert tried(one) == [
            ("cluster/a", Outcome.RETRYABLE_FAILED, 500),
            ("cluster/b", Outcome.SUCCEEDED, 200),
        ]
        assert not made.ended.is_set(), "who awaits it knows"


async def test_who_leaves_between_the_two_is_settled_once():
    async with ground(False, a=[REFUSAL]) as one:
        made = document()
        carried = Express(one.gateway).begin(made)
        await made.handed_over.wait()

        carried.leave()

        assert not one.running
        assert tried(one) == [("cluster/a", Outcome.CANCELLED, None)]
        assert not made.downstream.committed


async def test_who_leaves_after_it_went_on_is_settled_by_the_loop():
    async with ground(False, a=[REFUSAL], b=[waits]) as one:
        made = document()
        carried = Express(one.gateway).begin(made)
        await made.handed_over.wait()
        task = asyncio.create_task(carried.go_on())
        await until(lambda: one.nodes["b"].asked)

        task.cancel()
        await asyncio.wait([task])

        assert not one.running
        assert [outcome for _, outcome, _ in tried(one)] == [
            Outcome.RETRYABLE_FAILED,
            Outcome.CANCELLED,
        ]


async def test_a_connection_that_was_gone_already_is_handed_over_at_once():
    async with ground(False, a=[json_answer(BODY)]) as one:
        (pool,) = (
            it
            for origin, it in one.pools._pools.items()
            if origin[2] == one.nodes["a"].server.port
        )
        pool._idle[-1].gone = True
        made = document()
        carried = Express(one.gateway).begin(made)

        assert made.handed_over.is_set()
        await carried.go_on()

        assert tried(one) == [("cluster/a", Outcome.SUCCEEDED, 200)]
        assert not one.running


@pytest.mark.parametrize("stalls", [True, False])
async def test_a_stream_whose_wait_is_long_has_its_head_early(stalls):
    async with ground(False, a=[waits]) as one:
        made = FakeAsked(streaming()._replace(model="m1"))
        carried = Express(one.gateway).begin(made)
        assert len(one.gateway.wheel) == 1

        if stalls:
            carried.errand.early.tick(one.gateway.wheel.clock() + 60)
            assert made.downstream.status == 200
        carried.leave()

        assert len(one.gateway.wheel) == 0
        assert made.downstream.committed is stalls
