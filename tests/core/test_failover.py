"""The attempt loop: who comes next, and how each attempt is booked."""

import pytest

from llmgw.core.classify import Effect, Verdict, Whose
from llmgw.core.eligibility import Candidate
from llmgw.core.failover import Ending, Failover, Finish, Handoff, Outcome
from llmgw.core.plan import RoutePlan
from tests import builders

UPSTREAM = Verdict(Whose.UPSTREAM, True, Effect.FAILURE, "upstream_error", budgeted=True)
FREE = Verdict(Whose.MODEL, True, Effect.FAILURE, "upstream_model_unavailable")
CLIENT = Verdict(Whose.CLIENT, False, Effect.NONE, "client_error")


def walk(*names, **fields):
    return Failover(
        RoutePlan(tuple(Candidate(f"p/{name}", builders.node(name)) for name in names)), **fields
    )


def fail(failover, verdict=UPSTREAM, *, visible=False, **fields):
    failover.dispatch(now=1.0)
    return failover.record(verdict, now=2.0, visible=visible, **fields)


def booked(failover):
    return [(one.candidate.assignment, one.outcome) for one in failover.log]


def test_the_next_candidate_serves_after_a_failure():
    failover = walk("a", "b")

    step = fail(failover, status=502)
    assert isinstance(step, Handoff)
    assert step.attempt.handed_on
    assert failover.candidate.assignment == "p/b"
    failover.dispatch(now=3.0, owner="me")
    failover.succeed(now=4.0)

    assert booked(failover) == [
        ("p/a", Outcome.RETRYABLE_FAILED),
        ("p/b", Outcome.SUCCEEDED),
    ]
    first, second = failover.log
    assert (first.ordinal, first.started, first.ended, first.status) == (1, 1.0, 2.0, 502)
    assert (second.ordinal, second.owner, second.started, second.ended) == (2, "me", 3.0, 4.0)
    assert failover.handoffs == 1


@pytest.mark.parametrize(
    ("names", "fields", "recorded", "ending"),
    [
        pytest.param("ab", {}, {"verdict": CLIENT}, Ending.FINAL, id="a client's own fault"),
        pytest.param("ab", {}, {"visible": True}, Ending.VISIBLE, id="after visible output"),
        pytest.param("a", {}, {}, Ending.EXHAUSTED, id="the last candidate"),
        pytest.param("ab", {"may_move": False}, {}, Ending.PINNED, id="a hard pin"),
        pytest.param("ab", {}, {"budget_ok": False}, Ending.OVER_BUDGET, id="over the budget"),
    ],
)
def test_where_nobody_else_may_serve_the_attempt_has_failed(names, fields, recorded, ending):
    failover = walk(*names, **fields)

    step = fail(failover, **recorded)

    assert isinstance(step, Finish)
    assert step.ending is ending
    assert booked(failover) == [("p/a", Outcome.FAILED)]
    assert not step.attempt.handed_on
    assert failover.handoffs == 0


def test_handoffs_that_need_no_budget_do_not_ask_for_it():
    assert isinstance(fail(walk("a", "b"), FREE, budget_ok=False), Handoff)


def test_the_last_attempt_of_many_is_never_retryable():
    failover = walk("a", "b", "c")
    steps = [fail(failover) for _ in range(3)]

    assert [type(step) for step in steps] == [Handoff, Handoff, Finish]
    assert [outcome for _, outcome in booked(failover)] == [
        Outcome.RETRYABLE_FAILED,
        Outcome.RETRYABLE_FAILED,
        Outcome.FAILED,
    ]
    assert failover.handoffs == 2


def test_a_lost_lease_skips_its_candidate_without_an_attempt():
    failover = walk("a", "b", "c")
    failover.skip()
    fail(failover)
    failover.skip()

    assert failover.candidate is None
    assert booked(failover) == [("p/b", Outcome.FAILED)]
    assert failover.handoffs == 0


def test_where_all_leases_are_lost_there_is_no_attempt():
    failover = walk("a")
    failover.skip()

    assert failover.candidate is None
    assert failover.log == ()
    assert walk().candidate is None


def test_a_client_that_leaves_cancels_what_runs():
    failover = walk("a", "b")
    fail(failover)
    failover.dispatch(now=3.0)
    failover.cancel(now=4.0)

    assert booked(failover) == [
        ("p/a", Outcome.RETRYABLE_FAILED),
        ("p/b", Outcome.CANCELLED),
    ]
    assert failover.log[1].ended == 4.0


def test_a_client_that_leaves_during_the_handoff_leaves_a_failed_attempt():
    failover = walk("a", "b")
    fail(failover)
    failover.cancel(now=3.0)

    assert booked(failover) == [("p/a", Outcome.FAILED)]


def test_a_client_that_leaves_early_or_late_changes_nothing():
    failover = walk("a")
    failover.cancel(now=0.0)
    assert failover.log == ()
    failover.dispatch(now=1.0)
    failover.succeed(now=2.0)
    failover.cancel(now=3.0)

    assert booked(failover) == [("p/a", Outcome.SUCCEEDED)]


def test_the_last_candidate_knows_that_it_is():
    failover = walk("a", "b")

    assert not failover.is_last
    fail(failover)
    assert failover.is_last
    assert walk("a", "b", may_move=False).is_last
