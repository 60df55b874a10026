"""Health checks: when they come, what they write, what is logged and counted."""

from dataclasses import replace

import pytest

from llmgw.core.config import GatewayConfig
from llmgw.core.discovery import ModelDiscovery
from llmgw.core.health import Failed, NodeHealth, Passed, Status
from llmgw.observe.metrics import HEALTH_CHECK_PANICS
from llmgw.runtime.monitor import RECHECK_SPACING, HealthMonitor
from llmgw.runtime.registry import Registry
from llmgw.runtime.tasks import Supervisor
from tests.builders import account, config, node
from tests.fakes.asked import Asked, settle
from tests.fakes.clock import Clock

A, B = node("a", 1), node("b", 2)
OFF = node("off", 3, health_path=None)
DRAINING = node("draining", 4, drain=True)
SICK = Failed(connection=False)
REFUSED = Failed(connection=True)


class House:
    def __init__(self, supervisor: Supervisor, *upstreams, **sections) -> None:
        self.clock = Clock()
        self.registry = Registry(config(*upstreams, **sections), clock=self.clock)
        self.asked = Asked()
        self.monitor = HealthMonitor(self.registry, supervisor, self.asked)
        self.monitor.start()

    def health(self, name: str) -> NodeHealth:
        return self.registry.fleet().states[name].health

    async def check(self, name: str, found: Passed | Failed | None) -> None:
        """One more check of that node, out of turn."""
        if not self.asked.is_waiting(name):
            self.clock.advance(RECHECK_SPACING)
            self.monitor.recheck(self.registry.fleet().states[name].upstream)
            await settle()
        await self.asked.answer(name, found)


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


class TestWhoIsChecked:
    async def test_every_node_at_once_after_the_start_a_draining_one_too(self, supervisor):
        house = House(supervisor, A, DRAINING, OFF, account("acct"))
        await settle()

        assert house.asked.calls == ["a", "draining"]

    async def test_each_with_the_configured_time(self, supervisor):
        house = House(supervisor, A, gateway=GatewayConfig(health_timeout=1.5))
        await settle()

        assert house.asked.limits == [{"within": 1.5}]

    async def test_nodes_that_a_reload_adds(self, house):
        house.registry.reload(config(A, B, node("c", 9)))
        house.monitor.reload()
        await settle()

        assert house.asked.calls == ["a", "b", "c"]


class TestWhatIsWritten:
    async def test_a_check_writes_health_and_nothing_else(self, house):
        await house.asked.answer("a", SICK)

        assert house.health("a").checked is Status.DEGRADED
        assert house.health("b") == NodeHealth()
        assert house.registry.fleet().states["a"].discovery == ModelDiscovery()

    async def test_a_check_that_hangs_leaves_the_others_alone(self, house):
        for _ in range(5):
            await house.check("b", SICK)

        assert house.health("b").checked is Status.DEAD
        assert house.health("a").checked is Status.HEALTHY
        assert house.asked.calls.count("a") == 1

    async def test_a_check_that_could_not_be_made_changes_nothing(self, house):
        for found in (SICK, None, None, None):
            await house.check("a", found)
        assert house.health("a").fails == 1

        await house.check("a", SICK)
        assert house.health("a").fails == 2

    async def test_one_pass_brings_a_dead_node_back(self, house):
        for found in (SICK, SICK, SICK, Passed()):
            await house.check("a", found)

        assert house.health("a").checked is Status.HEALTHY

    async def test_an_answer_after_a_reload_lands_where_the_url_stayed(self, house):
        house.registry.reload(config(replace(A, name="z"), node("b", 99)))
        house.monitor.reload()
        await settle()

        await house.asked.answer("a", SICK)
        await house.asked.answer("b", SICK)

        assert house.health("z").fails == 1
        assert house.health("b").fails == 0


class TestRecheck:
    async def test_takes_the_node_out_and_looks_at_once(self, house):
        await house.asked.answer("a", Passed())

        house.monitor.recheck(A)
        await settle()

        assert house.health("a").is_skipped(house.clock() + 9.9)
        assert house.asked.calls == ["a", "b", "a"]
        await house.asked.answer("a", REFUSED)
        assert house.health("a").checked is Status.DEGRADED

    async def test_of_a_burst_of_failed_requests_one_check_speaks_for_all(self, house):
        """Else the node would be dead, and its running attempts given up, in milliseconds."""
        await house.asked.answer("a", Passed())
        for _ in range(50):
            house.monitor.recheck(A)
            await settle()
            if house.asked.is_waiting("a"):
                await house.asked.answer("a", REFUSED)

        assert house.health("a").fails == 1

        house.clock.advance(RECHECK_SPACING)
        house.monitor.recheck(A)
        await settle()
        assert house.asked.is_waiting("a")

    async def test_comes_as_often_as_checks_do_where_those_are_frequent(self, supervisor):
        house = House(supervisor, A, gateway=GatewayConfig(health_interval=0.2))
        await settle()
        await house.asked.answer("a", Passed())
        house.monitor.recheck(A)
        await settle()
        await house.asked.answer("a", Passed())

        house.clock.advance(0.2)
        house.monitor.recheck(A)
        await settle()

        assert house.asked.is_waiting("a")

    @pytest.mark.parametrize(
        "upstream", [OFF, account("acct"), node("gone")], ids=["health off", "account", "gone"]
    )
    async def test_asks_nobody_who_is_not_checked(self, supervisor, upstream):
        house = House(supervisor, A, OFF, account("acct"))
        await settle()

        house.monitor.recheck(upstream)
        await settle()

        assert house.asked.calls == ["a"]

    async def test_a_node_without_checks_is_taken_out_all_the_same(self, supervisor):
        house = House(supervisor, OFF)

        house.monitor.recheck(OFF)

        assert house.health("off").is_skipped(house.clock())

    async def test_what_it_remembers_goes_with_the_node(self, house):
        await house.asked.answer("a", Passed())
        house.monitor.recheck(A)
        await settle()
        await house.asked.answer("a", Passed())
        for nodes in ((B,), (A, B)):
            house.registry.reload(config(*nodes))
            house.monitor.reload()
        await settle()
        await house.asked.answer("a", Passed())

        house.monitor.recheck(A)
        await settle()

        assert house.asked.is_waiting("a")


class TestLogsAndMetrics:
    async def test_each_change_of_status_gives_one_line(self, house, caplog):
        caplog.set_level("INFO", "llmgw")
        for found in (Passed(), SICK, SICK, SICK, SICK, Passed(), Passed()):
            await house.check("a", found)

        assert [(one.message, one.node) for one in caplog.records] == [
            ("node degraded", "a"),
            ("node dead", "a"),
            ("node healthy", "a"),
        ]

    async def test_a_check_that_breaks_is_counted_and_proves_nothing(self, house, caplog):
        before = HEALTH_CHECK_PANICS._value.get()

        await house.asked.answer("a", LookupError())

        assert HEALTH_CHECK_PANICS._value.get() - before == 1
        assert house.health("a") == NodeHealth()
        assert [record.message for record in caplog.records] == ["task failed"]

    async def test_a_failed_check_is_no_panic(self, house):
        before = HEALTH_CHECK_PANICS._value.get()

        await house.asked.answer("a", REFUSED)

        assert HEALTH_CHECK_PANICS._value.get() == before
