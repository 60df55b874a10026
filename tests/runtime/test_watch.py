"""What requests see of a node reaches those who own its state."""

import pytest

from llmgw.core.discovery import Recheck
from llmgw.core.health import Answered, NodeHealth
from llmgw.runtime.registry import Registry
from llmgw.runtime.watch import NodeWatch
from tests.builders import config, node

NODE = node("a")


class Monitor:
    def __init__(self) -> None:
        self.rechecked = []

    def recheck(self, upstream) -> None:
        self.rechecked.append(upstream)


class Discoverer:
    def __init__(self, says: Recheck) -> None:
        self.says = says

    async def recheck(self, upstream, model: str) -> Recheck:
        return self.says


class Listening:
    """A registry that keeps the events of health to itself."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.told = []

    def __getattr__(self, name: str):
        return getattr(self._registry, name)

    def health_event(self, *event) -> None:
        self.told.append(event)


def watch(says: Recheck = Recheck.UNKNOWN):
    registry, monitor = Registry(config(NODE)), Monitor()
    return NodeWatch(registry, monitor, Discoverer(says)), registry, monitor


def test_a_node_that_could_not_be_reached_is_checked_at_once():
    made, _, monitor = watch()

    made.connection_failed(NODE)

    assert monitor.rechecked == [NODE]


def test_answers_of_500_and_more_make_a_streak_and_any_other_ends_it():
    made, registry, _ = watch()

    made.answered(NODE, 503)
    made.answered(NODE, 500)
    assert registry.state(NODE).health.streak == 2
    made.answered(NODE, 429)

    assert registry.state(NODE).health.streak == 0


def test_an_answer_that_changes_nothing_is_not_even_told():
    registry = Registry(config(NODE))
    listening = Listening(registry)
    made = NodeWatch(listening, Monitor(), Discoverer(Recheck.UNKNOWN))

    made.answered(NODE, 200)
    made.answered(node("gone", 1), 200)

    assert listening.told == []
    assert registry.state(NODE).health == NodeHealth()
    made.answered(NODE, 502)
    assert isinstance(listening.told[0][1], Answered)


@pytest.mark.parametrize(
    ("says", "gone"),
    [(Recheck.GONE, True), (Recheck.STILL_LISTED, False), (Recheck.UNKNOWN, False)],
)
async def test_a_model_is_gone_only_if_a_list_says_so(says, gone):
    made, _, _ = watch(says)

    assert await made.model_is_gone(NODE, "m") is gone
