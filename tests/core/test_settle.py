"""What a finished request changes, whichever way it went."""

import pytest

from llmgw.core.circuit import CircuitKey, DemotionKey, Failed, Neutral, Succeeded
from llmgw.core.classify import Effect, Verdict, Whose
from llmgw.core.eligibility import Candidate
from llmgw.core.failover import Failover, Outcome
from llmgw.core.plan import RoutePlan
from llmgw.core.settle import (
    CLIENT_LEFT,
    NOTHING,
    Changes,
    Demote,
    handoff_changes,
    scope_of,
    settlement,
    success_changes,
)
from llmgw.core.types import RouteClass
from llmgw.core.usage import Usage
from tests import builders

SCOPE = scope_of(builders.streaming(), pool="p", key="k")
FAILURE = Verdict(Whose.UPSTREAM, True, Effect.FAILURE, "upstream_error", demote_for=60.0)
FULL = Verdict(Whose.FULL, True, Effect.DEMOTION, "upstream_full", demote_for=3.0)
MAYBE = Verdict(Whose.UPSTREAM, True, Effect.FAILURE_IF_SERVED, "upstream_error", demote_for=60.0)
CLIENT = Verdict(Whose.CLIENT, False, Effect.NONE, "client_error")


def circuit(name):
    return CircuitKey("p", f"p/{name}", "m", RouteClass.SSE)


def demote(name, seconds):
    return Demote(DemotionKey("p", "k", "m", f"p/{name}"), seconds)


def walked(*ends, owner=None, plan="abc"):
    """A failover after these ends: a verdict, "served", "left", or None for still running."""
    failover = Failover(
        RoutePlan(tuple(Candidate(f"p/{name}", builders.node(name)) for name in plan))
    )
    told = NOTHING
    for end in ends:
        if end == "between":
            failover.cancel(now=9.0)
            break
        failover.dispatch(now=1.0, owner=owner)
        if isinstance(end, Verdict):
            step = failover.record(end, now=2.0, visible=False, status=500)
            if step.attempt.handed_on:
                told += handoff_changes(SCOPE, step.attempt)
        elif end == "served":
            failover.succeed(now=3.0)
        elif end == "left":
            failover.cancel(now=3.0)
    return failover.log, told


def settled(log, *, status=200):
    return settlement(SCOPE, log, status=status, started=0.5, ended=9.5, usage=Usage(3, 5))


def all_changes(*ends, owner=None, plan="abc"):
    log, told = walked(*ends, owner=owner, plan=plan)
    return told, settled(log).changes


def test_a_scope_is_what_is_kept_of_a_call():
    assert (SCOPE.request_id, SCOPE.pool, SCOPE.key, SCOPE.model) == ("req_1", "p", "k", "m")
    assert (SCOPE.lane, SCOPE.route, SCOPE.stream) == (
        RouteClass.SSE,
        "/v1/chat/completions",
        True,
    )


def test_a_success_closes_and_undemotes():
    told, end = all_changes("served", owner="me")

    assert told == NOTHING
    assert end == Changes(((circuit("a"), Succeeded("me")),), (demote("a", None),))


def test_a_failure_is_told_before_the_handoff_and_only_once():
    told, end = all_changes(FAILURE, "served", owner="me")

    assert told == Changes(((circuit("a"), Failed("upstream_error", "me")),), (demote("a", 60.0),))
    assert end == Changes(((circuit("b"), Succeeded("me")),), (demote("b", None),))


def test_the_last_failure_is_told_at_the_end():
    told, end = all_changes(FAILURE, FAILURE, plan="ab")

    assert [key for key, _ in told.circuits] == [circuit("a")]
    assert end == Changes(((circuit("b"), Failed("upstream_error")),), (demote("b", 60.0),))


@pytest.mark.parametrize(
    ("owner", "given_back"), [(None, ()), ("me", ((circuit("a"), Neutral("me")),))]
)
class TestWhatSaysNothingAboutTheCircuit:
    def test_a_full_upstream_is_only_demoted(self, owner, given_back):
        told, end = all_changes(FULL, "served", owner=owner)

        assert told == Changes(given_back, (demote("a", 3.0),))
        assert [key for key, _ in end.circuits] == [circuit("b")]

    def test_a_clients_own_fault(self, owner, given_back):
        assert all_changes(CLIENT, owner=owner) == (NOTHING, Changes(given_back))

    def test_a_client_that_left(self, owner, given_back):
        assert all_changes("left", owner=owner) == (NOTHING, Changes(given_back))

    def test_an_attempt_that_nobody_ended(self, owner, given_back):
        assert all_changes(None, owner=owner) == (NOTHING, Changes(given_back))

    def test_a_500_that_nobody_did_better(self, owner, given_back):
        assert all_changes(MAYBE, owner=owner, plan="a") == (NOTHING, Changes(given_back))
        _, end = all_changes(MAYBE, CLIENT, owner=owner, plan="ab")
        assert end.circuits[:1] == given_back[:1]
        assert not end.demotions


def test_a_500_is_a_failure_once_a_later_candidate_serves():
    told, end = all_changes(MAYBE, "served", owner="me")

    assert told == NOTHING
    assert end == Changes(
        ((circuit("a"), Failed("upstream_error", "me")), (circuit("b"), Succeeded("me"))),
        (demote("a", 60.0), demote("b", None)),
    )


def test_each_slot_is_settled_exactly_once():
    for ends in [
        (FAILURE, FULL, "served"),
        (MAYBE, FAILURE, "left"),
        (FULL, MAYBE, CLIENT),
        (FAILURE, MAYBE, None),
        (FULL, FAILURE, "between"),
    ]:
        log, told = walked(*ends, owner="me")
        events = (told + settled(log).changes).circuits
        assert sorted(key.assignment for key, _ in events) == [
            one.candidate.assignment for one in log
        ]


def test_nothing_is_told_of_an_attempt_that_has_not_failed():
    log, _ = walked("served")

    assert handoff_changes(SCOPE, log[0]) == NOTHING


@pytest.mark.parametrize(
    ("ends", "status", "outcome", "retries", "outcomes"),
    [
        (["served"], 200, Outcome.SUCCEEDED, 0, ["succeeded"]),
        ([FAILURE, "served"], 200, Outcome.SUCCEEDED, 1, ["retryable_failed", "succeeded"]),
        ([FAILURE, CLIENT], 400, Outcome.FAILED, 1, ["retryable_failed", "failed"]),
        ([FAILURE, "left"], CLIENT_LEFT, Outcome.CANCELLED, 1, ["retryable_failed", "cancelled"]),
        ([FAILURE, "between"], CLIENT_LEFT, Outcome.CANCELLED, 0, ["failed"]),
        ([CLIENT], 499, Outcome.FAILED, 0, ["failed"]),
        ([None], CLIENT_LEFT, Outcome.CANCELLED, 0, ["cancelled"]),
    ],
)
def test_the_rows_tell_how_it_went(ends, status, outcome, retries, outcomes):
    log, _ = walked(*ends)
    done = settled(log, status=status)

    assert (done.request.outcome, done.request.status) == (outcome, status)
    assert done.request.retry_count == retries
    assert [row.outcome for row in done.attempts] == outcomes
    assert [row.ordinal for row in done.attempts] == list(range(1, len(log) + 1))


def test_the_rows_hold_whose_it_was_and_when():
    log, _ = walked(FAILURE, None)
    request, (first, second) = settled(log).request, settled(log).attempts

    assert (request.request_id, request.pool, request.key) == ("req_1", "p", "k")
    assert (request.started, request.ended, request.usage) == (0.5, 9.5, Usage(3, 5))
    assert (first.assignment, first.reason, first.status) == ("p/a", "upstream_error", 500)
    assert (first.started, first.ended) == (1.0, 2.0)
    assert (second.reason, second.status, second.ended) == (None, None, 9.5)


def test_a_plain_success_changes_what_any_other_does():
    log, _ = walked("served")
    whole = settled(log)

    assert success_changes(whole.request, "p/a") == whole.changes
    assert whole.changes == Changes(((circuit("a"), Succeeded()),), (demote("a", None),))
