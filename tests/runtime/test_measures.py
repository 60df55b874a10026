"""What one request leaves in the metrics, and what it says of itself to who may see it."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from llmgw.core.config import RoutingConfig, StreamsConfig
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.runtime.journey import Journey
from tests.builders import call, node, principal, streaming
from tests.fakes.exchange import JSON, FakeExchange
from tests.fakes.scene import ANSWER, DONE, HI, REFUSED, ROLE, Scene, answers, streams

TIMEOUT = UpstreamError(FaultKind.TIMEOUT)


class Measured:
    """Reads what was added since it was made."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, tuple], float] = {}
        self._before = self._read()

    def _read(self) -> dict[tuple[str, tuple], float]:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
        }

    def added(self, name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return self._read().get(key, 0.0) - self._before.get(key, 0.0)


async def test_attempts_count_by_assignment_and_outcome():
    scene, measured = Scene(REFUSED, answers()), Measured()

    await scene.serves()

    first, second = (f"cluster/{name}" for name in scene.upstreams.names)
    name = "gateway_assignment_requests_total"
    assert measured.added(name, assignment=first, outcome="retryable_failed") == 1
    assert measured.added(name, assignment=second, outcome="succeeded") == 1


async def test_a_running_attempt_is_in_flight_on_its_assignment():
    stuck = FakeExchange(200, JSON, (), hangs=True)
    scene, name = Scene(stuck), "gateway_assignment_in_flight_requests"
    measured = Measured()
    task = asyncio.ensure_future(scene.serves())
    for _ in range(20):
        await asyncio.sleep(0)
    assignment = f"cluster/{scene.upstreams.names[0]}"
    assert measured.added(name, assignment=assignment) == 1

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert measured.added(name, assignment=assignment) == 0


async def test_a_stream_counts_its_first_visible_event_and_the_gap_between_events():
    scene, measured = Scene(streams(ROLE + HI, HI, HI, DONE)), Measured()

    await scene.serves(streaming())

    assignment = f"cluster/{scene.upstreams.names[0]}"
    first = "gateway_assignment_first_visible_event_seconds_count"
    assert measured.added(first, assignment=assignment) == 1
    assert measured.added("gateway_time_to_first_visible_event_seconds_count") == 1
    assert measured.added("gateway_inter_event_gap_seconds_count") == 1


async def test_a_wait_that_was_given_up_is_counted_and_is_in_no_histogram():
    scene, measured = Scene(TIMEOUT, TIMEOUT), Measured()

    client = await scene.serves()

    assert client.status == 504
    assert measured.added("gateway_timeouts_total", kind="answer") == 2
    assert measured.added("gateway_time_to_headers_seconds_count") == 0


async def test_a_stream_that_went_silent_is_counted():
    idle = streams(ROLE + HI, end=UpstreamError(FaultKind.IDLE))
    scene, measured = Scene(idle, streams=StreamsConfig(idle_timeout=0.01)), Measured()

    await scene.serves(streaming())

    assert measured.added("gateway_timeouts_total", kind="event") == 1


@pytest.mark.parametrize(
    ("who", "routing", "tells"),
    [
        pytest.param({"explain": True}, RoutingConfig(), True, id="a key that may"),
        pytest.param({}, RoutingConfig(explain=True), True, id="everybody may"),
        pytest.param({}, RoutingConfig(), False, id="nobody may"),
    ],
)
@pytest.mark.parametrize(
    ("made", "answer"),
    [
        pytest.param(call(), answers, id="whole"),
        pytest.param(streaming(), lambda: streams(ROLE + HI, DONE), id="a stream"),
        pytest.param(call(), lambda: answers(b"no", 400), id="a refusal"),
    ],
)
async def test_the_overhead_is_told_to_who_may_see_it(made, answer, who, routing, tells):
    scene = Scene(answer(), routing=routing)

    client = await scene.serves(made, **who)

    told = [value for name, value in client.headers if name == "x-llmgw-overhead-ms"]
    assert len(told) == tells
    assert all(0 < float(value) < 1000 for value in told)


async def test_the_journey_is_the_callers_and_knows_the_last_attempt():
    scene, journey = Scene(REFUSED, answers(), upstreams=(node("a"), node("b", 8001))), Journey()

    await scene.gateway.serve(call(), principal(), scene.client, journey=journey)

    assert scene.client.body == ANSWER
    assert journey.attempts == 2
    assert journey.assignment == f"cluster/{scene.upstreams.names[-1]}"
    assert journey.overhead > 0
