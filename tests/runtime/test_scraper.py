"""Engine load: in a lane of its own, harmless whatever it brings."""

import pytest

from llmgw.core.discovery import ModelDiscovery
from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.core.health import NodeHealth
from llmgw.runtime.registry import Registry
from llmgw.runtime.scraper import LoadScraper
from llmgw.runtime.tasks import Supervisor
from tests.builders import account, config, node
from tests.fakes.asked import Asked, settle
from tests.fakes.clock import Clock

A = node("a", 1, metrics_port=9)
B = node("b", 2)
LOAD = EngineLoad(1, 2, 0.5)


class House:
    def __init__(self, supervisor: Supervisor) -> None:
        self.clock = Clock()
        self.registry = Registry(config(A, B, account("acct")), clock=self.clock)
        self.loads, self.gpus = Asked(), Asked()
        self.scraper = LoadScraper(self.registry, supervisor, self.loads, self.gpus)
        self.scraper.start()

    def state(self, name: str):
        return self.registry.fleet().states[name]


@pytest.fixture
async def house():
    supervisor = Supervisor()
    made = House(supervisor)
    await settle()
    yield made
    await supervisor.stop()


async def test_nodes_are_scraped_at_once_and_accounts_are_not(house):
    assert house.loads.calls == ["a", "b"]


async def test_load_counts_before_the_exporter_has_answered(house):
    await house.loads.answer("a", LOAD)
    assert house.state("a").load == LOAD

    await house.gpus.answer("a", (Gpu("0"),))
    assert house.state("a").gpus == (Gpu("0"),)


async def test_a_scrape_that_fails_makes_load_and_gpus_unknown(house):
    house.registry.set_load(A, LOAD)
    house.registry.set_gpus(A, (Gpu("0"),))

    await house.loads.answer("a", None)
    await house.gpus.answer("a", ())

    assert (house.state("a").load, house.state("a").gpus) == (None, ())


async def test_one_that_hangs_is_alone_in_it_and_is_not_asked_twice(house):
    for _ in range(3):
        await house.loads.answer("b", LOAD)
        house.clock.advance(5)
        house.scraper.reload()
        await settle()

    assert (house.loads.calls.count("a"), house.loads.calls.count("b")) == (1, 4)


async def test_it_touches_neither_health_nor_discovery(house, caplog):
    await house.loads.answer("a", LookupError())
    await house.loads.answer("b", None)

    assert house.state("a").health == house.state("b").health == NodeHealth()
    assert house.state("a").discovery == ModelDiscovery()
