"""A lane of questions: at once, then each at its moment, never two to one, none behind another."""

import asyncio
from itertools import pairwise

import pytest

from llmgw.runtime.rounds import BURST, Rounds, next_turn, phase_of
from llmgw.runtime.tasks import Supervisor
from tests.builders import node
from tests.fakes.asked import Asked, settle
from tests.fakes.clock import Clock

A, B = node("a", 1), node("b", 2)
INTERVAL = 3.0


class Lane:
    """A lane under a clock of its own, stepped by hand."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.clock = Clock()
        self.asked = Asked()
        self.failures = 0
        self.rounds = Rounds(
            "check of", self._ask, supervisor, clock=self.clock, on_failure=self._count
        )

    def watch(self, *nodes, interval: float = INTERVAL) -> None:
        self.rounds.watch((one, interval) for one in nodes)

    async def turn(self, seconds: float = 0.0) -> float | None:
        self.clock.advance(seconds)
        delay = self.rounds.turn()
        await settle()
        return delay

    async def _ask(self, upstream) -> None:
        await self.asked(upstream)

    def _count(self) -> None:
        self.failures += 1


@pytest.fixture
async def supervisor():
    made = Supervisor()
    yield made
    await made.stop()


@pytest.fixture
def lane(supervisor):
    return Lane(supervisor)


class TestTurns:
    async def test_all_are_asked_at_once_at_the_start(self, lane):
        lane.watch(A, B)
        await lane.turn()

        assert sorted(lane.asked.calls) == ["a", "b"]

    async def test_a_thousand_are_asked_in_bursts_that_let_others_in_between(self, lane):
        lane.watch(*(node(f"node-{n}", n + 1) for n in range(2 * BURST + 1)))

        assert [await lane.turn() for _ in range(2)] == [0.0, 0.0]
        assert len(lane.asked.calls) == 2 * BURST

        assert await lane.turn() > INTERVAL / 4
        assert len(lane.asked.calls) == 2 * BURST + 1

    async def test_later_questions_come_once_an_interval_each_at_its_own_moment(self, lane):
        moments: dict[str, list[float]] = {"a": [], "b": []}
        lane.watch(A, B)
        for _ in range(1000):
            await lane.turn(0.05)
            for name in ("a", "b"):
                if lane.asked.is_waiting(name):
                    moments[name].append(lane.clock.now)
                    await lane.asked.answer(name, None)

        for times in moments.values():
            first, *gaps = [after - before for before, after in pairwise(times)]
            assert INTERVAL / 2 <= first <= INTERVAL * 1.5 + 0.05
            assert gaps == pytest.approx([INTERVAL] * len(gaps), abs=0.051)
        assert abs(moments["a"][1] - moments["b"][1]) % INTERVAL > 0.05

    async def test_one_that_does_not_answer_delays_nobody_and_is_not_asked_again(self, lane):
        lane.watch(A, B)
        await lane.turn()

        for _ in range(10):
            await lane.asked.answer("b", None)
            await lane.turn(1.5 * INTERVAL)

        assert lane.asked.calls.count("b") == 11
        assert lane.asked.calls.count("a") == 1
        assert lane.rounds.in_flight == {"a", "b"}

    async def test_one_that_answered_late_is_asked_at_its_next_turn(self, lane):
        lane.watch(A)
        await lane.turn()
        await lane.turn(10 * INTERVAL)
        await lane.asked.answer("a", None)

        await lane.turn(1.5 * INTERVAL)

        assert lane.asked.calls == ["a", "a"]

    async def test_turns_missed_while_the_process_stood_still_are_not_made_up_for(self, lane):
        lane.watch(A)
        await lane.turn()
        await lane.asked.answer("a", None)

        await lane.turn(100 * INTERVAL)

        assert lane.asked.calls == ["a", "a"]

    async def test_it_tells_how_long_nobody_is_due(self, lane):
        assert await lane.turn() is None
        lane.watch(A, B)
        delay = await lane.turn()
        for name in ("a", "b"):
            await lane.asked.answer(name, None)

        await lane.turn(delay - 0.001)
        assert len(lane.asked.calls) == 2
        await lane.turn(0.002)
        assert len(lane.asked.calls) == 3


class TestOutOfTurn:
    async def test_a_question_may_be_asked_at_once(self, lane):
        lane.watch(A)
        await lane.turn()
        await lane.asked.answer("a", None)

        assert lane.rounds.ask_now(A)
        await settle()
        assert lane.asked.calls == ["a", "a"]

    async def test_not_while_the_last_one_is_open(self, lane):
        lane.watch(A)
        await lane.turn()

        assert not lane.rounds.ask_now(A)

    async def test_not_to_somebody_who_is_not_watched(self, lane):
        assert not lane.rounds.ask_now(A)


class TestWatch:
    async def test_a_new_one_is_asked_at_once_and_the_others_keep_their_turn(self, lane):
        lane.watch(A)
        await lane.turn()
        await lane.asked.answer("a", None)

        lane.watch(A, B)
        await lane.turn()

        assert lane.asked.calls == ["a", "b"]

    async def test_one_that_is_gone_is_not_asked_again(self, lane):
        lane.watch(A, B)
        await lane.turn()
        for name in ("a", "b"):
            await lane.asked.answer(name, None)

        lane.watch(B)
        await lane.turn(2 * INTERVAL)

        assert lane.asked.calls[2:] == ["b"]

    async def test_an_open_question_to_one_that_is_gone_ends_in_peace(self, lane):
        lane.watch(A)
        await lane.turn()
        lane.watch()

        await lane.asked.answer("a", None)

        assert lane.rounds.in_flight == frozenset()
        assert lane.failures == 0

    async def test_another_url_is_somebody_else_and_does_not_wait_for_the_old_one(self, lane):
        lane.watch(A)
        await lane.turn()

        lane.watch(node("a", 99))
        await lane.turn()

        assert [one.url.port for one in lane.asked.upstreams] == [1, 99]

    async def test_new_settings_are_used_from_the_next_question_on(self, lane):
        lane.watch(A)
        await lane.turn()
        await lane.asked.answer("a", None)

        lane.watch(node("a", 1, ring="r"))
        await lane.turn(2 * INTERVAL)

        assert [one.ring for one in lane.asked.upstreams] == [None, "r"]

    async def test_a_shorter_interval_counts_at_once_and_a_longer_one_after_the_next_turn(
        self, lane
    ):
        lane.watch(A, interval=1000)
        await lane.turn()
        await lane.asked.answer("a", None)

        lane.watch(A, interval=1)
        assert await lane.turn() <= 1.5

        lane.watch(A, interval=1000)
        assert await lane.turn() <= 1.5

    async def test_questions_have_names_that_tell_whom(self, lane, supervisor):
        lane.watch(A)
        await lane.turn()

        assert supervisor.names == ("check of a",)


class TestFailures:
    async def test_a_question_that_breaks_is_counted_and_asked_again(self, lane, caplog):
        lane.watch(A)
        await lane.turn()
        await lane.asked.answer("a", LookupError())

        await lane.turn(2 * INTERVAL)

        assert lane.failures == 1
        assert lane.asked.calls == ["a", "a"]
        assert [record.message for record in caplog.records] == ["task failed"]

    async def test_one_that_a_stop_cancels_is_not(self, lane, supervisor):
        lane.watch(A)
        await lane.turn()

        await supervisor.stop()

        assert lane.failures == 0
        assert lane.rounds.in_flight == frozenset()


class TestRun:
    async def test_it_wakes_for_a_change_and_for_the_next_turn(self, supervisor):
        asked = Asked()
        loop = asyncio.get_running_loop()
        rounds = Rounds("check of", asked, supervisor, clock=loop.time)
        supervisor.loop("lane", rounds.run)
        await settle()
        assert asked.calls == []

        rounds.watch([(A, 0.02)])
        await settle()
        assert asked.calls == ["a"]

        asked.came.clear()
        await asked.answer("a", None)
        async with asyncio.timeout(5):
            await asked.came.wait()


class TestMoments:
    @pytest.mark.parametrize("now", [0.0, 0.3, 999.999, 123456.789])
    def test_the_next_one_is_half_an_interval_away_at_the_least(self, now):
        for n in range(200):
            wait = next_turn(phase_of(f"node-{n}"), now, INTERVAL) - now

            assert INTERVAL / 2 <= wait <= INTERVAL * 1.5 + 1e-6

    def test_a_thousand_names_spread_over_the_interval(self):
        tenths = [
            int(next_turn(phase_of(f"10.0.{n // 250}.{n % 250}"), 0, 1.0) % 1.0 * 10)
            for n in range(1000)
        ]

        assert all(60 <= tenths.count(tenth) <= 140 for tenth in range(10))

    def test_a_name_s_moments_are_whole_intervals_apart(self):
        phase = phase_of("a")
        first = next_turn(phase, 17.0, INTERVAL)

        assert next_turn(phase, first, INTERVAL) == pytest.approx(first + INTERVAL)
        assert next_turn(phase, first + 1, INTERVAL) == pytest.approx(first + INTERVAL)

    def test_lanes_ask_a_name_one_after_the_other(self):
        turns = [next_turn(phase_of("a", n / 3), 17.0, INTERVAL) % INTERVAL for n in range(3)]

        gaps = [(after - before) % INTERVAL for before, after in pairwise(turns)]
        assert gaps == pytest.approx([INTERVAL / 3] * 2)
