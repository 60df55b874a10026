"""What earlier requests, other gateways and operators say about where a request may go."""

import asyncio
import json
import time

import pytest

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import CircuitsConfig, LimitsConfig
from llmgw.core.errors import GatewayError
from llmgw.core.pins import PinKind, call_of_resource
from llmgw.core.routes import ID_ROUTES
from llmgw.core.settle import Changes
from llmgw.core.types import CLUSTER, AssignmentId, RouteClass, UpstreamName
from tests.builders import call
from tests.fakes.exchange import FakeExchange
from tests.fakes.patience import until
from tests.fakes.scene import ANSWER, REFUSED, REJECTS, Scene, answers, streams

A, B = AssignmentId("cluster/a"), AssignmentId("cluster/b")
MADE = b'{"id":"resp_1","object":"response","output":[]}'
CREATED = b'data: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
DELTA = b'data: {"type":"response.output_text.delta","delta":"hi"}\n\n'
COMPLETED = b'data: {"type":"response.completed","response":{"id":"resp_1"}}\n\n'
ROUTES = {(one.method, one.path): one for one in ID_ROUTES}


def responses(**members: object):
    body = json.dumps({"model": "m", "input": "x", **members}).encode()
    return call(body, path="/v1/responses")


def continued(id: str = "resp_1"):
    return responses(previous_response_id=id)


def with_files(*ids: str):
    return responses(input=[{"type": "input_file", "file_id": one} for one in ids])


def of_id(method: str, path: str, id: str = ""):
    return call_of_resource(
        ROUTES[method, path], id, query="", headers=(), body=b"", request_id="req_1"
    )


def pinned(scene: Scene, id: str, assignment: AssignmentId, kind=PinKind.RESPONSE) -> Scene:
    scene.database.pins.rows[CLUSTER, kind, id] = assignment
    return scene


async def refused(scene: Scene, made) -> GatewayError:
    with pytest.raises(GatewayError) as error:
        await scene.serves(made)
    return error.value


@pytest.mark.parametrize(
    ("made", "script"),
    [
        pytest.param(responses(), (answers(MADE),), id="an answer"),
        pytest.param(responses(stream=True), (streams(CREATED, DELTA, COMPLETED),), id="a stream"),
        pytest.param(responses(), (REFUSED, answers(MADE)), id="of the second candidate"),
    ],
)
async def test_what_a_request_makes_is_pinned_to_who_made_it(made, script):
    scene = Scene(*script)

    await scene.serves(made)

    maker = scene.upstreams.names[-1]
    await until(lambda: scene.database.pins.rows != {})
    assert scene.database.pins.rows == {(CLUSTER, PinKind.RESPONSE, "resp_1"): f"cluster/{maker}"}


async def test_the_pin_is_written_before_the_status_line():
    scene = Scene(answers(MADE))
    scene.database.door.hangs = True
    serving = asyncio.ensure_future(scene.serves(responses()))
    await until(lambda: scene.database.door.waiting != [])
    assert not scene.client.committed

    scene.database.door.release()
    await serving

    assert scene.client.body == MADE


@pytest.mark.parametrize(
    ("made", "body"),
    [
        pytest.param(responses(store=False), MADE, id="not stored"),
        pytest.param(call(), ANSWER, id="chat"),
    ],
)
async def test_what_nobody_can_continue_on_is_not_pinned(made, body):
    scene = Scene(answers(body))

    await scene.serves(made)

    assert scene.database.door.calls == 0


@pytest.mark.parametrize("assignment", [A, B])
async def test_a_request_that_continues_goes_where_the_response_is(assignment):
    for _ in range(3):
        scene = pinned(Scene(answers(MADE)), "resp_1", assignment)

        await scene.serves(continued())

        assert scene.upstreams.names == [assignment.removeprefix("cluster/")]


async def test_a_refusal_there_is_final_and_recorded():
    scene = pinned(Scene(answers(REJECTS, 404)), "resp_1", A)

    client = await scene.serves(continued())

    assert (client.status, client.body) == (404, REJECTS)
    assert scene.upstreams.names == ["a"]
    assert scene.settled == [[("failed", "upstream_model_unavailable")]]


async def test_a_pin_that_cant_serve_is_never_left():
    scene = pinned(Scene(), "resp_1", AssignmentId("cluster/gone"))

    error = await refused(scene, continued())

    assert (error.status, error.code) == (503, "pinned_assignment_unavailable")
    assert scene.upstreams.names == []


async def test_an_unknown_response_is_no_pin():
    scene = Scene(REFUSED, answers(MADE))

    await scene.serves(continued("resp_of_somebody"))

    assert scene.outcomes == ["retryable_failed", "succeeded"]


async def test_files_of_two_assignments_cant_be_named_together():
    scene = pinned(Scene(), "file_1", A, PinKind.FILE)
    pinned(scene, "file_2", B, PinKind.FILE)

    error = await refused(scene, with_files("file_1", "file_2"))

    assert (error.status, error.code) == (409, "file_assignment_conflict")


async def test_a_file_goes_to_the_first_assignment_and_is_found_again():
    for _ in range(2):
        scene = Scene(answers(b'{"id":"file_1"}'), answers(b'{"error":{"message":"mine"}}'))
        await scene.serves(of_id("POST", "/v1/files"))
        scene.client = type(scene.client)()

        client = await scene.serves(of_id("GET", "/v1/files/{id}/content", "file_1"))

        assert client.body == b'{"error":{"message":"mine"}}', "a file is shown as it is"
        assert scene.upstreams.names == ["a", "a"]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (of_id("GET", "/v1/responses/{id}", "r"), "response_not_found"),
        (of_id("DELETE", "/v1/files/{id}", "f"), "file_not_found"),
    ],
)
async def test_an_id_that_nobody_has_seen_is_not_found(made, code):
    scene = Scene()

    error = await refused(scene, made)

    assert (error.status, error.code) == (404, code)
    assert scene.upstreams.names == []


async def test_a_drained_node_gets_nothing():
    scene = Scene(answers(), answers())
    scene.database.drains.rows[UpstreamName("a")] = 1e12
    await scene.gateway.shared.look()

    for _ in range(2):
        scene.client = type(scene.client)()
        await scene.serves()

    assert scene.upstreams.names == ["b", "b"]


async def test_a_slot_that_another_gateway_has_skips_its_candidate():
    scene = Scene(answers(), circuits=CircuitsConfig(failure_threshold=1, open_for=0.0))
    key = CircuitKey(CLUSTER, A, "m", RouteClass.HTTP)
    scene.database.circuits.write(
        Changes(((key, Failed("x")),)), now=time.time(), config=scene.config.circuits
    )
    await scene.gateway.shared.look()
    scene.database.circuits.lease = _nobody

    await scene.serves()

    assert scene.upstreams.names == ["b"]
    assert scene.outcomes == ["succeeded"]


async def test_a_full_gateway_queues_and_then_refuses():
    hanging = FakeExchange(hangs=True)
    limits = LimitsConfig(max_in_flight=1, queue=1, queue_timeout=5.0)
    scene = Scene(hanging, answers(), limits=limits)
    first = asyncio.ensure_future(scene.serves())
    await until(lambda: scene.upstreams.asked != [])
    scene.client = type(scene.client)()
    second = asyncio.ensure_future(scene.serves())
    await asyncio.sleep(0)

    error = await refused(scene, call())

    assert (error.status, error.code) == (429, "server_is_overloaded")
    first.cancel()
    assert (await second).status == 200


async def _nobody(*_: object, **__: object) -> bool:
    return False
