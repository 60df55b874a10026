"""What requests have shown lately: bounded, by pool, and forgotten in time."""

import pytest

from llmgw.core.admin_seen import BUCKETS, QUIET, WIDTH, Sample
from llmgw.core.failover import Outcome
from llmgw.core.types import AssignmentId, PoolName, RouteClass
from llmgw.core.usage import UNKNOWN
from llmgw.runtime import observed as module
from llmgw.runtime.observed import Observed
from tests.fakes.clock import Clock
from tests.fakes.settlements import POOL, settled

A = (POOL, AssignmentId("blue/a"))
B = (POOL, AssignmentId("blue/b"))
LOST_AND_FOUND = (Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def observed(clock) -> Observed:
    return Observed(wall=clock)


def with_attempt(done, **fields):
    return done._replace(attempts=(done.attempts[0]._replace(**fields),))


def test_each_attempt_counts_for_its_own_assignment(observed):
    observed.settled(settled(started=990.0, outcomes=LOST_AND_FOUND))

    seen = observed.sightings([POOL])

    assert seen[A].total == Sample(attempts=1, failures=1)
    assert seen[B].total == Sample(attempts=1)


def test_nothing_is_kept_where_nobody_may_look(clock):
    unwanted = Observed(wanted=False, wall=clock)

    unwanted.settled(settled(started=990.0))

    assert unwanted.sightings([POOL]) == {}
    assert unwanted.requests([POOL], 10) == []


def test_an_error_is_kept_as_a_code(observed):
    observed.settled(settled(started=990.0, outcomes=LOST_AND_FOUND))

    [error] = observed.sightings([POOL])[A].errors

    assert (error.reason, error.status, error.model) == (
        "upstream_model_unavailable",
        404,
        "llama",
    )
    assert observed.sightings([POOL])[B].errors == ()


def test_of_many_errors_the_newest_stay(observed):
    for at in range(module.MOST_ERRORS + 3):
        observed.settled(settled(model=f"m{at}", started=990.0, outcomes=(Outcome.FAILED,)))

    errors = observed.sightings([POOL])[A].errors

    assert [one.model for one in errors] == ["m7", "m6", "m5", "m4", "m3"]


def test_a_clients_own_fault_is_no_failure_of_the_assignment(observed):
    done = settled(started=990.0, outcomes=(Outcome.FAILED,))
    observed.settled(with_attempt(done, reason="client_error", status=400))

    seen = observed.sightings([POOL])[A]

    assert (seen.total, seen.errors, seen.absent) == (Sample(attempts=1), (), frozenset())


def test_a_client_that_left_says_nothing(observed):
    observed.settled(settled(started=990.0, outcomes=(Outcome.CANCELLED,)))

    assert observed.sightings([POOL])[A].total == Sample()


def test_a_success_says_what_was_served_and_how(observed):
    observed.settled(settled(started=990.0))

    seen = observed.sightings([POOL])[A]

    assert set(seen.served) == {("llama", RouteClass.SSE)}
    assert seen.routes == {"/v1/chat/completions"}
    assert seen.streamed


@pytest.mark.parametrize("status", [405, 501])
def test_a_route_that_an_assignment_refuses_is_absent_until_it_serves(observed, status):
    done = settled(started=990.0, outcomes=(Outcome.FAILED,))
    observed.settled(with_attempt(done, reason="client_error", status=status))
    assert observed.sightings([POOL])[A].absent == {"/v1/chat/completions"}

    observed.settled(settled(started=991.0))

    assert observed.sightings([POOL])[A].absent == frozenset()


def test_the_time_to_the_first_event_is_that_of_the_last_attempt(observed):
    done = settled(started=990.0, outcomes=LOST_AND_FOUND)
    observed.settled(done._replace(first_event=0.25))

    seen = observed.sightings([POOL])

    assert seen[B].total.first_event == 0.25
    assert seen[A].total.first_event is None


def test_samples_move_on_with_time_and_fall_out(observed, clock):
    observed.settled(settled(started=clock.now - 1))
    samples = observed.sightings([POOL])[A].samples
    assert (len(samples), samples[-1].attempts) == (BUCKETS, 1)

    clock.now += 3 * WIDTH
    assert observed.sightings([POOL])[A].samples[-4].attempts == 1

    clock.now += BUCKETS * WIDTH
    assert observed.sightings([POOL])[A].samples == QUIET


def test_a_clock_that_is_set_back_loses_nothing(observed, clock):
    observed.settled(settled(started=clock.now - 1))
    clock.now -= 100.0

    assert observed.sightings([POOL])[A].total.attempts == 1


def test_another_pools_requests_are_in_no_answer(observed):
    observed.settled(settled("r1", started=990.0))
    observed.settled(settled("r2", pool="red", model="secret", started=990.0))

    assert set(observed.sightings([POOL])) == {A}
    assert [one.request_id for one, _ in observed.requests([POOL], 10)] == ["r1"]
    assert [one.model for one in observed.usage([POOL])] == ["llama"]
    assert observed.sightings([]) == {}
    assert observed.requests([PoolName("none")], 10) == []


def test_requests_come_newest_first_and_are_bounded(observed):
    for at in range(module.MOST_REQUESTS + 5):
        observed.settled(settled(f"r{at}", started=float(at)))

    found = observed.requests([POOL], 1000)

    assert len(found) == module.MOST_REQUESTS
    assert found[0][0].request_id == f"r{module.MOST_REQUESTS + 4}"
    assert len(observed.requests([POOL], 3)) == 3


def test_usage_is_of_five_minutes(observed, clock):
    observed.settled(settled("r1", started=clock.now - 10))
    observed.settled(settled("r2", started=clock.now - 5, usage=UNKNOWN))
    observed.settled(settled("r3", started=clock.now - 301))
    observed.settled(settled("r4", model="b", started=clock.now, outcomes=(Outcome.FAILED,)))

    lines = {one.model: one for one in observed.usage([POOL])}

    assert (lines["llama"].requests, lines["llama"].tokens_in, lines["llama"].tokens_out) == (
        2,
        10,
        20,
    )
    assert (lines["b"].requests, lines["b"].failed) == (1, 1)


def test_names_that_clients_make_up_are_bounded(observed, monkeypatch):
    monkeypatch.setattr(module, "MOST_SERVED", 3)
    for at in range(5):
        observed.settled(settled(model=f"m{at}", started=990.0))

    assert [model for model, _ in observed.sightings([POOL])[A].served] == ["m2", "m3", "m4"]


def test_a_reload_forgets_what_is_gone(observed):
    observed.settled(settled("r1", started=990.0, outcomes=LOST_AND_FOUND))
    observed.settled(settled("r2", pool="red", started=990.0))

    observed.retain({A})

    assert set(observed.sightings([POOL, PoolName("red")])) == {A}
    assert observed.requests([PoolName("red")], 10) == []
