"""What checks and requests make of a node's health, over every short history."""

from collections.abc import Iterator
from itertools import takewhile

import pytest

from llmgw.core.health import (
    Answered,
    ConnectionLost,
    Failed,
    HealthEvent,
    NodeHealth,
    Passed,
    Status,
    advance,
)

NOW = 100.0
PASSED = Passed()
REFUSED = Failed(connection=True)
SICK = Failed(connection=False)
LOST = ConnectionLost(NOW)
BAD = Answered(500, NOW)
GOOD = Answered(200, NOW)
ALPHABET: tuple[HealthEvent, ...] = (PASSED, REFUSED, SICK, LOST, BAD, GOOD)

History = tuple[HealthEvent, ...]


def after(*events: HealthEvent, threshold: int = 3) -> NodeHealth:
    health = NodeHealth()
    for event in events:
        health = advance(health, event, fail_threshold=threshold)
    return health


def histories(threshold: int, length: int = 6) -> Iterator[tuple[History, NodeHealth]]:
    """Every sequence of up to `length` events, with what it leads to."""
    level: list[tuple[History, NodeHealth]] = [((), NodeHealth())]
    for _ in range(length):
        level = [
            ((*events, event), advance(health, event, fail_threshold=threshold))
            for events, health in level
            for event in ALPHABET
        ]
        yield from level


def in_a_row(events: list[HealthEvent], wanted: tuple[HealthEvent, ...]) -> int:
    return sum(1 for _ in takewhile(lambda event: event in wanted, reversed(events)))


@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_every_history_of_up_to_six_events_gives_what_its_last_events_say(threshold):
    degraded_from = {1: 1, 2: 1, 3: 1}[threshold]
    for events, health in histories(threshold):
        checks = [event for event in events if isinstance(event, Passed | Failed)]
        answers = [event for event in events if isinstance(event, Answered)]
        fails = in_a_row(checks, (REFUSED, SICK))

        expected = Status.HEALTHY
        if fails >= degraded_from:
            expected = Status.DEGRADED
        if fails >= threshold:
            expected = Status.DEAD
        assert health.checked is expected, events
        assert health.fails == fails, events
        assert health.is_unreachable == (in_a_row(checks, (REFUSED,)) >= threshold), events
        assert health.streak == in_a_row(answers, (BAD,)), events
        assert health.is_skipped(NOW + 9.9) == (LOST in events), events


@pytest.mark.parametrize("threshold", [2, 3])
def test_requests_never_change_what_checks_found(threshold):
    for events, health in histories(threshold, length=5):
        checks = tuple(event for event in events if isinstance(event, Passed | Failed))
        alone = after(*checks, threshold=threshold)

        assert (health.checked, health.fails) == (alone.checked, alone.fails)


@pytest.mark.parametrize(
    ("threshold", "statuses"),
    [
        pytest.param(1, ["dead", "dead"], id="one failure is enough"),
        pytest.param(2, ["degraded", "dead", "dead"], id="two"),
        pytest.param(3, ["degraded", "degraded", "dead"], id="three"),
        pytest.param(4, ["healthy", "degraded", "degraded", "dead"], id="four"),
        pytest.param(
            6, ["healthy", "healthy", "degraded", "degraded", "degraded", "dead"], id="6"
        ),
    ],
)
def test_failures_in_a_row_degrade_and_then_kill(threshold, statuses):
    found = [after(*[SICK] * n, threshold=threshold).checked for n in range(1, len(statuses) + 1)]

    assert found == statuses


def test_one_pass_heals_a_dead_node():
    assert after(REFUSED, REFUSED, REFUSED, PASSED) == NodeHealth()


class TestUnreachable:
    def test_a_node_that_answers_badly_is_dead_but_reachable(self):
        health = after(SICK, SICK, SICK)

        assert health.checked is Status.DEAD
        assert not health.is_unreachable

    def test_a_node_that_hung_once_and_then_lost_its_power_becomes_unreachable(self):
        assert not after(SICK, REFUSED, REFUSED).is_unreachable
        assert after(SICK, REFUSED, REFUSED, REFUSED).is_unreachable

    def test_an_answer_of_whatever_kind_ends_it(self):
        dead = [REFUSED] * 3

        assert not after(*dead, SICK).is_unreachable
        assert not after(*dead, PASSED).is_unreachable


class TestStreak:
    def status(self, health: NodeHealth, now: float = NOW) -> Status:
        return health.status(now, overload_threshold=3)

    def test_three_bad_answers_in_a_row_show_a_healthy_node_as_degraded(self):
        assert self.status(after(BAD, BAD)) is Status.HEALTHY
        assert self.status(after(BAD, BAD, BAD)) is Status.DEGRADED

    def test_it_never_shows_a_node_as_dead_however_long_it_is(self):
        assert self.status(after(*[BAD] * 1000)) is Status.DEGRADED

    def test_it_ends_ten_seconds_after_the_last_bad_answer(self):
        health = after(BAD, BAD, BAD)

        assert self.status(health, NOW + 9.9) is Status.DEGRADED
        assert self.status(health, NOW + 10) is Status.HEALTHY

    def test_a_good_answer_ends_it_at_once(self):
        assert self.status(after(BAD, BAD, BAD, GOOD)) is Status.HEALTHY

    def test_a_passed_check_does_not(self):
        assert self.status(after(BAD, BAD, BAD, PASSED)) is Status.DEGRADED

    def test_it_makes_a_dead_node_no_better(self):
        assert self.status(after(SICK, SICK, SICK, BAD, BAD, BAD)) is Status.DEAD

    @pytest.mark.parametrize("status", [200, 301, 404, 429, 499])
    def test_other_answers_are_no_part_of_it(self, status):
        assert after(BAD, BAD, Answered(status, NOW)).streak == 0

    def test_a_good_answer_without_a_streak_changes_nothing(self):
        before = NodeHealth()

        assert advance(before, GOOD, fail_threshold=3) is before


class TestSkip:
    def test_a_lost_connection_takes_the_node_out_for_ten_seconds(self):
        health = after(LOST)

        assert health.is_skipped(NOW)
        assert health.is_skipped(NOW + 9.9)
        assert not health.is_skipped(NOW + 10)

    def test_a_passed_check_does_not_shorten_it(self):
        assert after(LOST, PASSED).is_skipped(NOW + 5)

    def test_another_one_lengthens_it(self):
        assert after(LOST, ConnectionLost(NOW + 5)).is_skipped(NOW + 14)


@pytest.mark.parametrize(
    ("events", "moment"),
    [
        pytest.param([], float("inf"), id="nothing is running out"),
        pytest.param([LOST], NOW + 10, id="the skip"),
        pytest.param([BAD], NOW + 10, id="the streak"),
        pytest.param([Answered(500, NOW - 4), LOST], NOW + 6, id="the earlier of both"),
        pytest.param([ConnectionLost(NOW - 20)], float("inf"), id="what has run out is over"),
    ],
)
def test_it_tells_when_time_alone_will_change_it(events, moment):
    assert after(*events).changes_at(NOW) == moment
