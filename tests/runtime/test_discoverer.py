"""Listings: when they come, what they write, what is logged and counted, and the re-check."""

import asyncio
from dataclasses import replace

import pytest

from llmgw.core.config import DiscoveryConfig, GatewayConfig
from llmgw.core.discovery import ModelDiscovery, Recheck, State
from llmgw.core.health import NodeHealth
from llmgw.core.listing import Page, Unreadable
from llmgw.observe.metrics import MODEL_DISCOVERY
from llmgw.runtime.discoverer import DiscoveryLoop
from llmgw.runtime.registry import Registry
from llmgw.runtime.tasks import Supervisor
from tests.builders import account, config, node
from tests.fakes.asked import Asked, settle
from tests.fakes.clock import Clock
from tests.fakes.patience import WITHIN

A, B = node("a", 1), node("b", 2)
ACCOUNT = account("acct", 3)
LLAMA = Page(("llama",), (("llama", 4096),))
QWEN = Page(("qwen",))
EMPTY = Page(())
BROKEN = Unreadable("status 500")
INTERVAL = 3.0


class House:
    def __init__(self, supervisor: Supervisor, *upstreams, **sections) -> None:
        self.clock = Clock()
        self.registry = Registry(config(*upstreams, **sections), clock=self.clock)
        self.asked = Asked()
        self.supervisor = supervisor
        self.discoverer = DiscoveryLoop(self.registry, supervisor, self.asked)
        self.discoverer.start()

    def listed(self, name: str) -> ModelDiscovery:
        return self.registry.fleet().states[name].discovery

    def reload(self, *upstreams, **sections) -> None:
        self.registry.reload(config(*upstreams, **sections))
        self.discoverer.reload()

    async def round(self, seconds: float = 2 * INTERVAL) -> None:
        """Let the loop see that time has passed."""
        self.clock.advance(seconds)
        self.discoverer.reload()  # which also wakes it
        await settle()

    async def recheck(self, model: str, *pages: Page | Unreadable | None) -> Recheck:
        task = self.supervisor.spawn("request", self.discoverer.recheck(A, model))
        await settle()
        for page in pages:
            await self.asked.answer("a", page)
        return await task


@pytest.fixture
async def supervisor():
    made = Supervisor()
    yield made
    await made.stop()


@pytest.fixture
async def house(supervisor):
    made = House(supervisor, A, B)
    await settle()
    return made


class TestWhoIsListed:
    async def test_every_node_and_account_at_once_after_the_start(self, supervisor):
        off, draining = node("off", 8, health_path=None), node("draining", 9, drain=True)
        house = House(supervisor, A, off, draining, ACCOUNT)
        await settle()

        assert sorted(house.asked.calls) == ["a", "acct", "draining", "off"]

    async def test_nodes_at_the_health_interval_and_accounts_at_their_own(self, supervisor):
        house = House(supervisor, A, ACCOUNT)
        await settle()
        for _ in range(10):
            for name in ("a", "acct"):
                if house.asked.is_waiting(name):
                    await house.asked.answer(name, LLAMA)
            await house.round()

        assert house.asked.calls.count("a") == 11
        assert house.asked.calls.count("acct") == 1
        await house.round(450)
        assert house.asked.calls.count("acct") == 2

    async def test_what_a_reload_adds_at_once(self, house):
        house.reload(A, B, ACCOUNT)
        await settle()

        assert house.asked.calls == ["a", "b", "acct"]

    async def test_each_with_its_limits(self, supervisor):
        limits = DiscoveryConfig(timeout=1, account_timeout=2, max_bytes=3)
        house = House(supervisor, A, ACCOUNT, discovery=limits)
        await settle()

        assert house.asked.limits == [{"within": 1, "max_bytes": 3}, {"within": 2, "max_bytes": 3}]


class TestWhatIsWritten:
    async def test_a_listing_writes_discovery_and_nothing_else(self, house):
        await house.asked.answer("a", LLAMA)

        assert house.listed("a") == ModelDiscovery(
            State.KNOWN, ("llama",), listed_at=house.clock(), max_lens=(("llama", 4096),)
        )
        assert house.listed("b") == ModelDiscovery()
        assert house.registry.fleet().states["a"].health == NodeHealth()

    async def test_failures_expire_a_node_and_leave_its_health_alone(self, house):
        for _ in range(3):
            await house.asked.answer("a", BROKEN)
            await house.round()

        assert house.listed("a").state is State.EXPIRED
        assert house.registry.fleet().states["a"].health == NodeHealth()

    async def test_one_that_could_not_be_made_changes_nothing(self, house):
        await house.asked.answer("a", BROKEN)
        for _ in range(3):
            await house.round()
            await house.asked.answer("a", None)

        assert (house.listed("a").state, house.listed("a").fails) == (State.UNTRIED, 1)

    async def test_a_listing_that_hangs_leaves_the_others_alone(self, house):
        for _ in range(5):
            await house.asked.answer("b", LLAMA)
            await house.round()

        assert house.listed("b").state is State.KNOWN
        assert house.listed("a").state is State.UNTRIED
        assert house.asked.calls.count("a") == 1

    async def test_one_that_began_before_a_reload_lands_where_the_url_stayed(self, house):
        house.reload(replace(A, name="z"), node("b", 99))
        await settle()

        await house.asked.answer("a", LLAMA)
        await house.asked.answer("b", LLAMA)

        assert house.listed("z").names == ("llama",)
        assert house.listed("b").state is State.UNTRIED

    async def test_one_that_a_stop_interrupts_writes_nothing(self, house, supervisor, caplog):
        await supervisor.stop()

        assert house.listed("a") == ModelDiscovery()
        assert caplog.records == []


class TestFirstRound:
    async def test_is_over_when_every_node_has_been_listed_whatever_came_of_it(self, house):
        waiting = house.supervisor.spawn("start", house.discoverer.first_round())
        await house.asked.answer("a", LLAMA)
        assert not waiting.done()

        await house.asked.answer("b", BROKEN)
        assert waiting.done()

    async def test_does_not_wait_for_accounts(self, supervisor):
        house = House(supervisor, ACCOUNT)

        await asyncio.wait_for(house.discoverer.first_round(), WITHIN)

    async def test_does_not_wait_for_a_node_that_a_reload_removed(self, house):
        await house.asked.answer("a", LLAMA)

        house.reload(A)

        await asyncio.wait_for(house.discoverer.first_round(), WITHIN)

    @pytest.mark.parametrize("outcome", [LookupError(), None], ids=["broke", "was not made"])
    async def test_counts_a_listing_that(self, house, outcome):
        await house.asked.answer("a", outcome)
        await house.asked.answer("b", LLAMA)

        await asyncio.wait_for(house.discoverer.first_round(), WITHIN)


class TestRecheck:
    @pytest.fixture(autouse=True)
    async def listed(self, house):
        await house.asked.answer("a", LLAMA)
        house.asked.calls.clear()
        house.asked.limits.clear()

    @pytest.mark.parametrize(
        ("page", "found"),
        [
            pytest.param(LLAMA, Recheck.STILL_LISTED, id="still there"),
            pytest.param(QWEN, Recheck.GONE, id="gone"),
            pytest.param(EMPTY, Recheck.GONE, id="a list without anything"),
            pytest.param(BROKEN, Recheck.UNKNOWN, id="no list"),
            pytest.param(None, Recheck.UNKNOWN, id="not asked"),
        ],
    )
    async def test_tells_what_the_list_says_of_the_model(self, house, page, found):
        assert await house.recheck("llama", page) is found
        assert house.asked.limits == [{"within": 2.0, "max_bytes": 4 * 1024 * 1024}]

    async def test_tells_discovery_of_a_list(self, house):
        await house.recheck("llama", QWEN)

        assert house.listed("a").names == ("qwen",)

    async def test_does_not_count_its_own_failure_against_the_node(self, house):
        await house.recheck("llama", BROKEN)

        assert (house.listed("a").state, house.listed("a").fails) == (State.KNOWN, 0)

    async def test_asks_once_for_all_who_want_to_know(self, house):
        tasks = [
            house.supervisor.spawn("request", house.discoverer.recheck(A, model))
            for model in ("llama", "qwen", "llama")
        ]
        await settle()
        await house.asked.answer("a", QWEN)

        assert [await task for task in tasks] == [Recheck.GONE, Recheck.STILL_LISTED, Recheck.GONE]
        assert house.asked.calls == ["a"]

    async def test_asks_at_most_once_in_an_interval_the_last_answer_speaks_meanwhile(self, house):
        await house.recheck("llama", QWEN)
        house.clock.advance(INTERVAL - 0.1)
        assert await house.recheck("llama") is Recheck.GONE

        house.clock.advance(0.1)
        assert await house.recheck("llama", LLAMA) is Recheck.STILL_LISTED
        assert house.asked.calls == ["a", "a"]

    async def test_does_not_wait_for_a_listing_of_the_loop_that_hangs(self, house):
        await house.round()
        assert house.asked.is_waiting("a")

        task = house.supervisor.spawn("request", house.discoverer.recheck(A, "llama"))
        await settle()
        assert house.asked.calls.count("a") == 2
        task.cancel()

    async def test_a_client_that_leaves_takes_the_answer_from_nobody(self, house):
        leaving = house.supervisor.spawn("request", house.discoverer.recheck(A, "llama"))
        staying = house.supervisor.spawn("request", house.discoverer.recheck(A, "llama"))
        await settle()
        leaving.cancel()
        await settle()

        await house.asked.answer("a", LLAMA)

        assert await staying is Recheck.STILL_LISTED

    async def test_what_it_remembers_goes_with_the_node(self, house):
        await house.recheck("llama", QWEN)
        house.reload(B)
        house.reload(A, B)
        await settle()
        await house.asked.answer("a", LLAMA)

        assert await house.recheck("llama", LLAMA) is Recheck.STILL_LISTED


class TestLogsAndMetrics:
    def count(self, name: str, result: str) -> float:
        return MODEL_DISCOVERY.labels(name, result)._value.get()

    @pytest.mark.parametrize(
        ("page", "result"), [(LLAMA, "success"), (EMPTY, "empty"), (BROKEN, "error")]
    )
    async def test_each_listing_is_counted_by_its_result(self, house, page, result):
        before = {one: self.count("a", one) for one in ("success", "empty", "error")}

        await house.asked.answer("a", page)

        grown = {one: self.count("a", one) - before[one] for one in before}
        assert grown == {"success": 0, "empty": 0, "error": 0} | {result: 1}

    async def test_each_transition_gives_its_line(self, house, caplog):
        caplog.set_level("INFO", "llmgw")
        for page in (LLAMA, LLAMA, BROKEN, BROKEN, BROKEN, BROKEN, QWEN, EMPTY, EMPTY):
            await house.asked.answer("a", page)
            await house.round()

        assert [(one.message, one.node) for one in caplog.records] == [
            ("models discovered", "a"),
            ("model discovery failed", "a"),
            ("model discovery expired", "a"),
            ("model discovery recovered", "a"),
            ("node model list changed", "a"),
            ("node reports no models", "a"),
        ]

    async def test_the_threshold_is_that_of_health(self, supervisor, caplog):
        house = House(supervisor, A, gateway=GatewayConfig(health_fail_threshold=1))
        await settle()

        await house.asked.answer("a", BROKEN)

        assert [one.message for one in caplog.records] == ["model discovery expired"]

    async def test_a_listing_that_landed_nowhere_is_neither_counted_nor_logged(
        self, house, caplog
    ):
        caplog.set_level("INFO", "llmgw")
        before = self.count("a", "success")
        house.reload(B)

        await house.asked.answer("a", LLAMA)

        assert self.count("a", "success") == before
        assert caplog.records == []
