"""The live whole: what a request sees of a reload, of its pool, and of those who cannot serve."""

import asyncio

import pytest

from llmgw.core.config import CircuitsConfig, GatewayConfig, RoutingConfig, StreamsConfig
from llmgw.core.discovery import Listed
from llmgw.core.errors import GatewayError
from llmgw.core.policy import KeyRing
from llmgw.core.types import CLUSTER
from llmgw.observe.metrics import IN_FLIGHT, MODEL_FILTER_EXCLUSIONS
from tests.builders import POOL, account, call, config, node, streaming
from tests.fakes.downstream import FakeDownstream
from tests.fakes.events import DONE, HELLO, ROLE
from tests.fakes.scene import ANSWER, REFUSED, Scene, answers, streams

A, B, C = node("a"), node("b", 8001), node("c", 8002)
UNKNOWN_MODEL = call(b'{"model":"other"}')


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestReload:
    async def test_a_request_finishes_on_the_snapshot_it_began_with(self):
        """Its next candidate may be a node that is gone since."""
        scene = Scene(None, answers())
        task = asyncio.create_task(scene.serves())
        await settle()
        first, _ = scene.upstreams.asked[0]

        scene.gateway.replace(config(C, models=("m",)), KeyRing.open())
        scene.upstreams.fail(REFUSED)
        await task

        assert scene.client.body == ANSWER
        assert {first, scene.upstreams.names[1]} == {"a", "b"}

    async def test_a_stream_goes_on_although_its_node_is_gone(self):
        exchange = streams(HELLO, hangs=True)
        scene = Scene(exchange)
        task = asyncio.create_task(scene.serves(streaming()))
        await settle()

        scene.gateway.replace(config(C, models=("m",)), KeyRing.open())
        exchange.push(DONE)
        exchange.sink.end(None)
        await task

        assert scene.client.body == HELLO + DONE
        assert scene.outcomes == ["succeeded"]

    async def test_the_next_request_sees_the_new_configuration_whole(self):
        scene = Scene(answers(), answers())
        changed = config(C, models=("m",), routing=RoutingConfig(explain=True))

        scene.gateway.replace(changed, KeyRing.open())
        client = await scene.serves()

        assert scene.upstreams.names == ["c"]
        assert client.header("x-llmgw-attempts") == "1"

    async def test_nodes_that_stay_keep_what_was_learned_of_them(self):
        scene = Scene()

        scene.gateway.replace(config(A, C, models=("m",)), KeyRing.open())

        states = scene.registry.fleet().states
        assert states["a"].discovery.names == ("m",)
        assert states["c"].discovery.names is None

    async def test_circuits_of_assignments_that_are_gone_are_forgotten(self):
        scene = Scene(*[answers(b"{}", 502)] * 2, circuits=CircuitsConfig(failure_threshold=1))
        await scene.serves()
        assert len(scene.gateway.board.view()) == 2

        scene.gateway.replace(config(A, models=("m",)), KeyRing.open())

        assert [key.assignment for key in scene.gateway.board.view()] == ["cluster/a"]

    async def test_the_wheel_and_the_circuits_take_the_new_limits(self):
        scene = Scene()
        before = scene.gateway.wheel.period

        scene.gateway.replace(
            config(A, streams=StreamsConfig(keepalive=0.2), circuits=CircuitsConfig(open_for=1.0)),
            KeyRing.open(),
        )

        assert scene.gateway.wheel.period < before
        assert scene.gateway.board.config.open_for == 1.0


class TestRefusal:
    async def test_nobody_is_asked_and_the_client_is_told_why(self):
        scene = Scene()

        with pytest.raises(GatewayError) as refused:
            await scene.serves(UNKNOWN_MODEL)

        assert (refused.value.status, refused.value.message) == (503, "no healthy node available")
        assert dict(refused.value.headers) == {
            "x-should-retry": "false",
            "x-llmgw-excluded": "missing=2",
        }
        assert scene.upstreams.asked == []
        assert not scene.client.committed

    async def test_the_log_names_the_nearest_model_and_no_word_of_the_client(self, caplog):
        scene = Scene()
        for one in scene.config.nodes:
            scene.registry.discovery_event(one, Listed(("llama-3-8b",), 0.0))

        with pytest.raises(GatewayError):
            await scene.serves(call(b'{"model":"llama-3-8B-SECRET"}'))

        (record,) = (one for one in caplog.records if "no node serves" in one.message)
        assert record.message == "no node serves requested model"
        assert (record.nearest, record.model, record.excluded) == (
            "llama-3-8b",
            "other",
            "missing=2",
        )

    @pytest.mark.parametrize(
        ("made", "label"),
        [
            pytest.param(call(), "m", id="a model that the configuration names"),
            pytest.param(UNKNOWN_MODEL, "other", id="a name that a client made up"),
        ],
    )
    async def test_exclusions_by_the_model_are_counted(self, made, label):
        scene = Scene()
        for one in scene.config.nodes:
            scene.registry.discovery_event(one, Listed(("else",), 0.0))
        counter = MODEL_FILTER_EXCLUSIONS.labels(label, "missing")
        before = counter._value.get()

        with pytest.raises(GatewayError):
            await scene.serves(made)

        assert counter._value.get() - before == 2

    async def test_a_pool_of_accounts_does_not_know_the_model_of_a_node(self):
        scene = Scene(upstreams=(A, account("x")))
        scene.registry.discovery_event(A, Listed(("m", "nodes-only"), 0.0))
        made = call(b'{"model":"nodes-only"}')

        with pytest.raises(GatewayError) as refused:
            await scene.serves(made, pool=POOL)

        assert (refused.value.status, refused.value.code) == (404, "model_not_found")


async def test_each_key_is_served_by_its_own_pool():
    scene = Scene(answers(), answers(), upstreams=(A, account("x")))

    await scene.serves()
    scene.client = FakeDownstream()
    await scene.serves(pool=POOL)

    assert scene.upstreams.names == ["a", "x"]
    assert [list(scene.gateway.catalog(pool).entries) for pool in (CLUSTER, POOL)] == [
        ["m"],
        ["m"],
    ]


@pytest.mark.parametrize("end", ["answered", "refused", "left"])
async def test_requests_in_flight_are_counted_until_they_end(end):
    before = IN_FLIGHT._value.get()
    scene = Scene(answers() if end == "answered" else None)
    made = UNKNOWN_MODEL if end == "refused" else call()
    task = asyncio.create_task(scene.serves(made))
    await settle()
    if end == "left":
        assert IN_FLIGHT._value.get() - before == 1
        task.cancel()

    await asyncio.gather(task, return_exceptions=True)

    assert IN_FLIGHT._value.get() == before


async def test_only_streams_are_committed_early():
    limits = StreamsConfig(commit_after=0.0)
    plain, stream = Scene(None, streams=limits), Scene(streams(ROLE, hangs=True), streams=limits)
    tasks = [
        asyncio.create_task(plain.serves()),
        asyncio.create_task(stream.serves(streaming())),
    ]
    await settle()

    for scene in (plain, stream):
        scene.gateway.wheel.turn()

    assert not plain.client.committed
    assert stream.client.status == 200
    assert stream.client.header("content-type") == "text/event-stream; charset=utf-8"
    for task in tasks:
        task.cancel()


async def test_the_retry_budget_is_the_pools_and_over_it_the_failure_is_the_answer():
    """Ten handoffs are always allowed, then a fifth of the requests."""
    scene = Scene()
    scene.upstreams._script = [answers(b"{}", 502) for _ in range(200)]
    asked = []
    for _ in range(15):
        scene.client = FakeDownstream()
        scene.upstreams.asked.clear()
        scene.gateway.board._circuits.clear()
        scene.gateway.board.version += 1
        for one in scene.config.nodes:
            scene.registry.reload(scene.config)
            scene.registry.discovery_event(one, Listed(("m",), 0.0))
        await scene.serves()
        asked.append(len(scene.upstreams.asked))

    assert asked == [2] * 10 + [1] * 5


def test_request_ids_are_new_each_time():
    scene_ids = {Scene().gateway.new_request_id() for _ in range(100)}

    assert len(scene_ids) == 100
    assert all(one.startswith("req_") for one in scene_ids)


async def test_what_is_small_is_held_and_what_is_not_is_passed_by_the_running_limits():
    scene = Scene(answers(), answers(), gateway=GatewayConfig(max_buffered_response_bytes=4))
    await scene.serves()
    scene.gateway.replace(config(A, B, models=("m",)), KeyRing.open())
    scene.client = FakeDownstream()

    await scene.serves()

    assert scene.client.body == ANSWER
