"""The lanes over real sockets: one that hangs for ever holds none of the others up."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from llmgw.core.config import DiscoveryConfig, GatewayConfig
from llmgw.core.discovery import State
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import Status
from llmgw.runtime.discoverer import DiscoveryLoop
from llmgw.runtime.monitor import HealthMonitor
from llmgw.runtime.registry import Registry
from llmgw.runtime.scraper import LoadScraper
from llmgw.runtime.tasks import Supervisor
from llmgw.upstream.client import WatchClient
from llmgw.upstream.known_lists import KnownLists
from llmgw.upstream.listing import list_models
from llmgw.upstream.probe import probe
from llmgw.upstream.scrape import scrape_gpus, scrape_load
from tests.builders import config, node
from tests.fakes.patience import WITHIN
from tests.fakes.rawserver import Peer, RawServer, json_answer

INTERVAL = 0.02
LIST = json_answer(b'{"data":[{"id":"llama"}]}')
PATIENT = DiscoveryConfig(timeout=60.0)


class ScriptedNode:
    """A node whose endpoints answer what the test says; None hangs for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | None] = {
            "/health": json_answer(),
            "/v1/models": LIST,
            "/metrics": json_answer(b"vllm:num_requests_running 3\n"),
        }
        self.asked = {path: 0 for path in self.answers}

    async def play(self, peer: Peer) -> None:
        while True:
            path = (await peer.request()).line.split()[1]
            self.asked[path] += 1
            answer = self.answers[path]
            if answer is None:
                await peer.left()
                return
            await peer.send(answer)


class Watching:
    """All three lanes on one node, with the real client."""

    def __init__(self, port: int, supervisor: Supervisor, client: WatchClient) -> None:
        self.gateway = GatewayConfig(health_interval=INTERVAL, health_timeout=60.0)
        self.registry = Registry(config(node("a", port), gateway=self.gateway, discovery=PATIENT))
        self.lanes = (
            HealthMonitor(self.registry, supervisor, partial(probe, client)),
            DiscoveryLoop(self.registry, supervisor, partial(list_models, client, KnownLists())),
            LoadScraper(
                self.registry,
                supervisor,
                partial(scrape_load, client),
                partial(scrape_gpus, client),
            ),
        )
        for lane in self.lanes:
            lane.start()

    @property
    def state(self) -> UpstreamState:
        return self.registry.fleet().states["a"]

    def reload(self) -> None:
        self.registry.reload(self.registry.config)
        for lane in self.lanes:
            lane.reload()

    async def until(self, reached: Callable[[UpstreamState], bool]) -> None:
        for _ in range(2000):
            if reached(self.state):
                return
            await asyncio.sleep(INTERVAL / 4)
        pytest.fail("not reached within ten seconds")


@pytest.fixture
async def fake():
    return ScriptedNode()


@pytest.fixture
async def server(fake):
    async with RawServer(fake.play) as running:
        yield running


@pytest.fixture
async def supervisor():
    made = Supervisor()
    yield made
    await made.stop()


@pytest.fixture
async def client():
    made = WatchClient()
    yield made
    await made.close()


async def test_a_listing_that_hangs_for_ever_leaves_health_and_load_alone(
    fake, server, supervisor, client
):
    fake.answers["/v1/models"] = None
    watching = Watching(server.port, supervisor, client)

    for answer, status in [
        (json_answer(status=500), Status.DEAD),
        (json_answer(), Status.HEALTHY),
        (json_answer(status=503), Status.DEAD),
        (json_answer(), Status.HEALTHY),
    ]:
        fake.answers["/health"] = answer
        await watching.until(lambda state, wanted=status: state.health.checked is wanted)

    await watching.until(lambda state: state.load is not None)
    assert watching.state.discovery.state is State.UNTRIED
    assert fake.asked["/v1/models"] == 1


async def test_a_health_check_that_hangs_for_ever_leaves_discovery_and_load_alone(
    fake, server, supervisor, client
):
    fake.answers["/health"] = None
    watching = Watching(server.port, supervisor, client)

    for answer, state in [
        (LIST, State.KNOWN),
        (json_answer(b"<html></html>"), State.EXPIRED),
        (json_answer(b'{"data":[]}'), State.KNOWN_EMPTY),
        (LIST, State.KNOWN),
    ]:
        fake.answers["/v1/models"] = answer
        await watching.until(lambda found, wanted=state: found.discovery.state is wanted)

    await watching.until(lambda state: state.load is not None)
    assert watching.state.health.checked is Status.HEALTHY
    assert fake.asked["/health"] == 1


async def test_a_scrape_that_hangs_leaves_health_and_discovery_alone(
    fake, server, supervisor, client
):
    fake.answers["/metrics"] = None
    fake.answers["/health"] = json_answer(status=500)
    watching = Watching(server.port, supervisor, client)

    await watching.until(lambda state: state.health.checked is Status.DEAD)
    await watching.until(lambda state: state.discovery.state is State.KNOWN)
    assert fake.asked["/metrics"] == 1


async def test_a_reload_during_a_listing_lets_it_land_and_asks_no_second_time(
    fake, supervisor, client
):
    answer, asked = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        path = (await peer.request()).line.split()[1]
        if path == "/v1/models":
            fake.asked[path] += 1
            asked.set()
            await answer.wait()
        await peer.send(fake.answers[path])

    async with RawServer(play) as server:
        watching = Watching(server.port, supervisor, client)
        await asked.wait()
        watching.reload()
        await asyncio.sleep(3 * INTERVAL)
        assert fake.asked["/v1/models"] == 1

        answer.set()
        await watching.until(lambda state: state.discovery.state is State.KNOWN)


async def test_a_stop_during_hanging_questions_ends_at_once_and_quietly(
    fake, server, client, caplog
):
    fake.answers = dict.fromkeys(fake.answers)
    supervisor = Supervisor()
    Watching(server.port, supervisor, client)
    await asyncio.sleep(3 * INTERVAL)

    async with asyncio.timeout(WITHIN):
        await supervisor.stop()

    assert supervisor.names == ()
    assert caplog.records == []


async def test_a_node_that_no_longer_listens_is_found_unreachable(
    fake, server, supervisor, client
):
    watching = Watching(server.port, supervisor, client)
    told = asyncio.Event()
    watching.registry.on_unreachable(watching.state.upstream, told.set)
    await watching.until(lambda state: state.discovery.state is State.KNOWN)

    server.stop()
    for peer in server.peers:
        peer.reset()

    async with asyncio.timeout(10):
        await told.wait()
    assert watching.state.health.is_unreachable
