"""Live state: values that can be kept, versions that mean something, reloads that lose nothing."""

from dataclasses import replace

import pytest

from llmgw.core.config import BaseUrl, GatewayConfig
from llmgw.core.discovery import Listed, ListingFailed, ModelDiscovery, State
from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.core.health import Answered, ConnectionLost, Failed, NodeHealth, Passed, Status
from llmgw.runtime.registry import Registry
from tests.builders import account, config, node
from tests.fakes.clock import Clock

NOW = 1000.0
A, B = node("a", 1), node("b", 2)
ACCOUNT = account("acct", 3)
LLAMA = Listed(("llama",), NOW)
REFUSED = Failed(connection=True)
LOADED = EngineLoad(3, 4, 0.5)


@pytest.fixture
def registry():
    return Registry(config(A, B, ACCOUNT), clock=Clock(NOW))


def health(registry: Registry, name: str) -> NodeHealth:
    return registry.fleet().states[name].health


def listed(registry: Registry, name: str) -> ModelDiscovery:
    return registry.fleet().states[name].discovery


class TestFleet:
    def test_begins_with_every_upstream_healthy_and_untried(self, registry):
        states = registry.fleet().states

        assert list(states) == ["a", "b", "acct"]
        assert {state.health.checked for state in states.values()} == {Status.HEALTHY}
        assert {state.discovery.state for state in states.values()} == {State.UNTRIED}

    def test_is_the_same_value_until_something_changes(self, registry):
        before = registry.fleet()

        registry.health_event(A, Passed())
        assert registry.fleet() is before

        registry.health_event(A, REFUSED)
        assert registry.fleet() is not before

    def test_a_reading_does_not_change_afterwards(self, registry):
        registry.discovery_event(A, LLAMA)
        registry.set_gpus(A, (Gpu("0"),))
        kept = registry.fleet()
        before = dict(kept.states)

        registry.health_event(A, REFUSED)
        registry.discovery_event(A, Listed(("qwen",), NOW))
        registry.set_load(A, LOADED)
        registry.set_gpus(A, ())
        registry.reload(config(B))

        assert dict(kept.states) == before
        assert kept.states["a"].discovery.names == ("llama",)
        assert kept.states["a"].gpus == (Gpu("0"),)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda one: one.health_event(A, REFUSED), id="a health check"),
            pytest.param(lambda one: one.discovery_event(A, Listed(("qwen",), NOW)), id="a list"),
            pytest.param(lambda one: one.discovery_event(A, ListingFailed("no")), id="a failure"),
            pytest.param(lambda one: one.set_load(A, LOADED), id="load"),
            pytest.param(lambda one: one.set_gpus(A, (Gpu("1"),)), id="gpus"),
            pytest.param(lambda one: one.reload(config(B)), id="a reload"),
        ],
    )
    def test_no_single_change_shows_in_a_reading_that_was_kept(self, registry, change):
        registry.discovery_event(A, LLAMA)
        registry.set_gpus(A, (Gpu("0"),))
        kept = registry.fleet()
        before = {name: replace(state) for name, state in kept.states.items()}

        change(registry)

        assert registry.fleet() is not kept
        assert dict(kept.states) == before

    def test_a_reader_cannot_change_it(self, registry):
        with pytest.raises(TypeError):
            registry.fleet().states["a"] = None

    def test_single_states_agree_with_it(self, registry):
        registry.health_event(A, REFUSED)
        states = registry.fleet().states

        assert registry.states() == tuple(states.values())
        assert registry.state(A) is states["a"]
        assert registry.state(node("nobody")) is None


class TestVersion:
    @pytest.mark.parametrize(
        ("change", "grows"),
        [
            pytest.param(lambda r: r.health_event(A, Passed()), False, id="a pass of a well one"),
            pytest.param(lambda r: r.health_event(A, REFUSED), True, id="a failure that degrades"),
            pytest.param(lambda r: r.health_event(B, REFUSED), False, id="one that does not"),
            pytest.param(
                lambda r: r.health_event(A, ConnectionLost(NOW)), True, id="the skip list"
            ),
            pytest.param(
                lambda r: r.health_event(A, Answered(500, NOW)), False, id="a streak of 1"
            ),
            pytest.param(lambda r: r.health_event(A, Answered(200, NOW)), False, id="an answer"),
            pytest.param(lambda r: r.discovery_event(A, LLAMA), True, id="a first list"),
            pytest.param(lambda r: r.discovery_event(B, replace(LLAMA, now=9)), False, id="again"),
            pytest.param(
                lambda r: r.discovery_event(A, ListingFailed("x")), False, id="a failure"
            ),
            pytest.param(lambda r: r.discovery_event(B, ListingFailed("x")), True, id="of a list"),
            pytest.param(
                lambda r: r.discovery_event(B, Listed(("llama",), NOW, (("llama", 8),))),
                True,
                id="a length",
            ),
            pytest.param(lambda r: r.set_load(A, LOADED), False, id="load"),
            pytest.param(lambda r: r.set_gpus(A, (Gpu("0"),)), False, id="GPUs"),
            pytest.param(lambda r: r.enter(A), False, id="a request"),
            pytest.param(lambda r: r.reload(r.config), True, id="a reload"),
            pytest.param(lambda r: r.health_event(node("x"), REFUSED), False, id="a stranger"),
        ],
    )
    def test_grows_when_what_routing_looks_at_changed(self, registry, change, grows):
        registry.discovery_event(B, LLAMA)
        registry.health_event(B, Failed(connection=False))
        before = registry.fleet().version

        change(registry)

        assert (registry.fleet().version > before) is grows
        assert registry.version == registry.fleet().version

    @pytest.mark.parametrize(
        ("change", "grows"),
        [
            pytest.param(lambda r: r.health_event(B, REFUSED), False, id="health"),
            pytest.param(lambda r: r.discovery_event(B, LLAMA), False, id="the same list"),
            pytest.param(
                lambda r: r.discovery_event(B, Listed((), NOW)), False, id="one empty list"
            ),
            pytest.param(
                lambda r: r.discovery_event(B, Listed(("qwen",), NOW)), True, id="another list"
            ),
            pytest.param(lambda r: r.reload(r.config), True, id="a reload"),
        ],
    )
    def test_that_of_listings_leaves_health_out(self, registry, change, grows):
        registry.discovery_event(B, LLAMA)
        before = registry.listings

        change(registry)

        assert (registry.listings > before) is grows

    def test_grows_when_a_streak_shows_and_when_it_ends(self, registry):
        versions = []
        for status in (500, 500, 500, 200):
            registry.health_event(A, Answered(status, NOW))
            versions.append(registry.version)

        assert versions == [1, 1, 2, 3]


class TestEvents:
    def test_health_tells_the_step(self, registry):
        step = registry.health_event(A, REFUSED)

        assert (step.before.checked, step.after.checked) == (Status.HEALTHY, Status.DEGRADED)

    def test_discovery_tells_the_step(self, registry):
        step = registry.discovery_event(A, LLAMA)

        assert (step.upstream, step.before.state, step.after.state) == (
            A,
            State.UNTRIED,
            State.KNOWN,
        )

    def test_the_threshold_of_the_configuration_counts_for_both(self):
        strict = GatewayConfig(health_fail_threshold=1)
        registry = Registry(config(A, gateway=strict), clock=Clock(NOW))

        registry.health_event(A, REFUSED)
        registry.discovery_event(A, ListingFailed("x"))

        assert health(registry, "a").checked is Status.DEAD
        assert listed(registry, "a").state is State.EXPIRED

    def test_neither_half_touches_the_other(self, registry):
        for _ in range(5):
            registry.discovery_event(A, ListingFailed("x"))
            registry.health_event(B, REFUSED)

        assert health(registry, "a") == NodeHealth()
        assert listed(registry, "b") == ModelDiscovery()

    def test_an_account_has_no_health_and_stays_untried(self, registry):
        for _ in range(5):
            assert registry.health_event(ACCOUNT, REFUSED) is None
            registry.discovery_event(ACCOUNT, ListingFailed("x"))

        assert health(registry, "acct") == NodeHealth()
        assert listed(registry, "acct").state is State.UNTRIED


class TestInFlight:
    def test_is_counted_for_each_upstream(self, registry):
        leave = registry.enter(A)
        registry.enter(A)
        registry.enter(ACCOUNT)
        assert [registry.in_flight(one) for one in (A, B, ACCOUNT)] == [2, 0, 1]

        leave()

        assert registry.in_flight(A) == 1

    def test_one_that_is_gone_counts_nothing(self, registry):
        registry.enter(node("nobody"))()

        assert registry.in_flight(node("nobody")) == 0

    @pytest.mark.parametrize(
        ("engine", "ours", "load"),
        [
            pytest.param(None, 2, 2, id="unknown: our own count"),
            pytest.param(LOADED, 2, 7, id="what others sent there counts too"),
            pytest.param(EngineLoad(0, 0, 0), 2, 2, id="read before ours arrived"),
        ],
    )
    def test_load_is_the_engine_s_word_but_never_less_than_ours(
        self, registry, engine, ours, load
    ):
        registry.set_load(A, engine)
        for _ in range(ours):
            registry.enter(A)

        assert registry.load(A) == load
        assert registry.load(node("nobody")) == 0


class TestUnreachable:
    def test_those_who_wait_are_told_once_when_the_node_is_lost(self, registry):
        told = []
        registry.on_unreachable(A, lambda: told.append("a"))
        registry.on_unreachable(B, lambda: told.append("b"))

        for _ in range(5):
            registry.health_event(A, REFUSED)

        assert told == ["a"]

    def test_a_node_that_answers_badly_is_waited_for(self, registry):
        told = []
        registry.on_unreachable(A, lambda: told.append("a"))

        for _ in range(5):
            registry.health_event(A, Failed(connection=False))

        assert told == []

    def test_who_no_longer_waits_is_not_told(self, registry):
        told = []
        remove = registry.on_unreachable(A, lambda: told.append("a"))
        remove()
        remove()

        for _ in range(3):
            registry.health_event(A, REFUSED)

        assert told == []

    def test_the_told_may_remove_themselves_and_others(self, registry):
        removes = []
        told = []

        def tell() -> None:
            told.append("a")
            for remove in removes:
                remove()

        removes += [registry.on_unreachable(A, tell), registry.on_unreachable(A, tell)]
        for _ in range(3):
            registry.health_event(A, REFUSED)

        assert told  # and no error

    def test_of_one_that_is_gone_nobody_is_told(self, registry):
        registry.on_unreachable(node("nobody"), pytest.fail)()


class TestReload:
    def filled(self) -> Registry:
        """Every part of a's state differs from a new one's."""
        registry = Registry(config(A, B, ACCOUNT), clock=Clock(NOW))
        for event in (REFUSED, Answered(500, NOW), Answered(502, NOW), ConnectionLost(NOW)):
            registry.health_event(A, event)
        registry.discovery_event(ACCOUNT, Listed(("gpt",), NOW))
        for listing in (Listed(("llama",), NOW, (("llama", 9),)), ListingFailed("status 500")):
            registry.discovery_event(A, listing)
        registry.set_load(A, LOADED)
        registry.set_gpus(A, (Gpu("0"),))
        registry.enter(A)
        return registry

    def test_what_stays_keeps_all_of_its_state(self):
        registry = self.filled()
        before = registry.fleet().states["a"]
        assert before.health.streak == 2
        assert before.discovery.fails == 1

        registry.reload(config(A, node("c", 9), ACCOUNT))

        assert registry.fleet().states["a"] == before
        assert registry.in_flight(A) == 1
        assert listed(registry, "acct").names == ("gpt",)

    def test_an_empty_list_that_was_not_believed_counts_on(self):
        registry = Registry(config(A), clock=Clock(NOW))
        registry.discovery_event(A, Listed((), NOW))

        registry.reload(config(A))
        registry.discovery_event(A, Listed((), NOW))

        assert listed(registry, "a").state is State.KNOWN_EMPTY

    def test_a_node_takes_its_new_settings_along(self):
        registry = self.filled()
        changed = replace(A, ring="r", drain=True)

        registry.reload(config(changed))

        state = registry.fleet().states["a"]
        assert state.upstream == changed
        assert state.discovery.names == ("llama",)

    def test_a_node_that_is_only_renamed_keeps_its_state(self):
        registry = self.filled()
        leave_under_old_name = registry.enter(A)
        renamed = replace(A, name="z")

        registry.reload(config(renamed))

        assert listed(registry, "z").names == ("llama",)
        assert registry.in_flight(renamed) == 2
        leave_under_old_name()
        assert registry.in_flight(renamed) == 1

    def test_an_event_under_the_old_name_lands_on_the_renamed_node(self):
        registry = self.filled()
        registry.reload(config(replace(A, name="z")))
        registry.reload(config(replace(A, name="y")))

        step = registry.discovery_event(A, Listed(("qwen",), NOW))

        assert step.upstream.name == "y"
        assert listed(registry, "y").names == ("qwen",)

    def test_two_nodes_that_swap_names_swap_nothing_else(self):
        registry = Registry(config(A, B), clock=Clock(NOW))
        registry.discovery_event(A, LLAMA)
        swapped = (replace(A, url=B.url), replace(B, url=A.url))

        registry.reload(config(*swapped))

        assert listed(registry, "b").names == ("llama",)
        assert listed(registry, "a").state is State.UNTRIED

    def test_another_url_is_another_node(self):
        registry = self.filled()
        moved = replace(A, url=BaseUrl("http", "10.0.0.9", 8000))
        leave = registry.enter(A)

        registry.reload(config(moved))

        assert health(registry, "a") == NodeHealth()
        assert listed(registry, "a") == ModelDiscovery()
        assert registry.fleet().states["a"].gpus == ()
        leave()
        assert registry.in_flight(moved) == 0

    @pytest.mark.parametrize(
        "after", [config(B), config(replace(A, url=BaseUrl("http", "10.0.0.9", 8000)))]
    )
    def test_events_for_one_that_is_gone_land_nowhere(self, after):
        registry = self.filled()
        registry.reload(after)
        before = registry.fleet()

        assert registry.health_event(A, REFUSED) is None
        assert registry.discovery_event(A, LLAMA) is None
        registry.set_load(A, LOADED)
        registry.set_gpus(A, (Gpu("0"),))

        assert registry.fleet() is before

    def test_a_new_account_at_the_same_provider_inherits_nothing(self):
        registry = self.filled()

        registry.reload(config(replace(ACCOUNT, name="other")))

        assert listed(registry, "other").state is State.UNTRIED

    def test_accounts_at_one_provider_stay_apart(self):
        other = replace(ACCOUNT, name="other")
        registry = Registry(config(ACCOUNT, other), clock=Clock(NOW))
        registry.discovery_event(ACCOUNT, LLAMA)

        registry.reload(config(other, ACCOUNT))

        assert listed(registry, "acct").names == ("llama",)
        assert listed(registry, "other").state is State.UNTRIED

    def test_an_account_does_not_become_a_node(self):
        registry = self.filled()

        registry.reload(config(node("acct", 3)))

        assert listed(registry, "acct").state is State.UNTRIED

    def test_those_who_wait_for_a_node_that_stays_are_still_told(self):
        registry = self.filled()
        told = []
        registry.on_unreachable(A, lambda: told.append("a"))

        registry.reload(config(replace(A, name="z")))
        for _ in range(3):
            registry.health_event(replace(A, name="z"), REFUSED)

        assert told == ["a"]

    def test_the_new_threshold_counts_from_then_on(self):
        registry = Registry(config(A), clock=Clock(NOW))
        registry.health_event(A, REFUSED)

        registry.reload(config(A, gateway=GatewayConfig(health_fail_threshold=2)))
        registry.health_event(A, REFUSED)

        assert health(registry, "a").checked is Status.DEAD

    def test_a_node_whose_checks_are_turned_off_is_not_dead_for_ever(self):
        registry = self.filled()
        for _ in range(3):
            registry.health_event(A, REFUSED)

        registry.reload(config(replace(A, health_path=None)))

        state = health(registry, "a")
        assert (state.checked, state.fails) == (Status.HEALTHY, 0)
        assert state.streak == 2

    def test_a_check_that_was_under_way_when_they_were_turned_off_lands_nowhere(self):
        registry = Registry(config(A), clock=Clock(NOW))
        registry.reload(config(replace(A, health_path=None)))

        assert registry.health_event(A, REFUSED) is None
        assert registry.health_event(A, ConnectionLost(NOW)) is not None
