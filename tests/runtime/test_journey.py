import time

import pytest
from prometheus_client import REGISTRY

from llmgw.core.types import AssignmentId
from llmgw.runtime.journey import Journey, Stage


def observed(stage: Stage) -> tuple[float, float]:
    labels = {"stage": stage.value}
    count = REGISTRY.get_sample_value("gateway_overhead_seconds_count", labels)
    total = REGISTRY.get_sample_value("gateway_overhead_seconds_sum", labels)
    return count or 0.0, total or 0.0


@pytest.mark.parametrize("stage", Stage)
def test_time_that_was_spent_counts_for_its_stage_and_for_the_whole(stage):
    count, total = observed(stage)
    journey = Journey()

    journey.spent(Stage.PARSE, time.perf_counter() - 1)
    before = observed(stage)
    journey.spent(stage, time.perf_counter() - 2)

    assert 3 <= journey.overhead < 3.5
    assert observed(stage)[0] == before[0] + 1
    assert 2 <= observed(stage)[1] - before[1] < 2.5
    assert observed(stage) > (count, total)


def test_each_attempt_is_noted_and_the_last_one_stays():
    journey = Journey()

    journey.attempt(AssignmentId("p/a"), now=1.0)
    journey.attempt(AssignmentId("p/b"), now=2.0)

    assert (journey.attempts, journey.assignment, journey.attempt_began) == (2, "p/b", 2.0)
