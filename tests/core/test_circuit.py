"""The circuit's states, and every sequence of events against what must always hold."""

from dataclasses import replace
from itertools import product

import pytest

from llmgw.core.circuit import (
    CLOSED,
    DEMOTED_FOR,
    OPEN_AT_MOST,
    Admits,
    Circuit,
    CircuitState,
    Failed,
    Lease,
    Leased,
    Neutral,
    Succeeded,
    advance,
    demotion_for,
)
from llmgw.core.config import CircuitsConfig

CONFIG = CircuitsConfig(failure_threshold=2, open_for=60.0)
FAILED = Failed("upstream_error")


def after(*events, start=CLOSED, now=0.0, config=CONFIG):
    circuit = start
    for event in events:
        circuit = advance(circuit, event, now=now, config=config)
    return circuit


OPENED = after(FAILED, FAILED)
PROBED = after(Leased("a"), start=OPENED, now=60.0)


def test_failures_in_a_row_open_it():
    once = after(FAILED)

    assert (once.state, once.failures) == (CircuitState.CLOSED, 1)
    assert not once.is_blank
    assert OPENED.state is CircuitState.OPEN
    assert (OPENED.open_until, OPENED.reason, OPENED.openings) == (60.0, "upstream_error", 1)


def test_a_success_between_them_begins_the_count_anew():
    assert after(FAILED, Succeeded()).is_blank
    assert after(FAILED, Succeeded(), FAILED).state is CircuitState.CLOSED


def test_neutral_completions_neither_count_nor_reset():
    assert after(FAILED, Neutral(), FAILED).state is CircuitState.OPEN


@pytest.mark.parametrize(
    ("circuit", "now", "admits", "changes_at"),
    [
        pytest.param(CLOSED, 0, Admits.FREELY, float("inf"), id="closed"),
        pytest.param(after(FAILED), 0, Admits.FREELY, float("inf"), id="one failure"),
        pytest.param(OPENED, 59.9, Admits.NOTHING, 60.0, id="open"),
        pytest.param(OPENED, 60.0, Admits.PROBE, float("inf"), id="open and due"),
        pytest.param(PROBED, 61.0, Admits.NOTHING, 120.0, id="half open, slot taken"),
        pytest.param(PROBED, 120.0, Admits.PROBE, float("inf"), id="the prober is gone"),
        pytest.param(
            after(Neutral("a"), start=PROBED),
            61.0,
            Admits.PROBE,
            float("inf"),
            id="the slot was given back",
        ),
    ],
)
def test_what_it_lets_through(circuit, now, admits, changes_at):
    assert circuit.admits(now, CONFIG) is admits
    assert circuit.changes_at(now, CONFIG) == changes_at


def test_one_of_many_wins_the_lease():
    circuit = OPENED
    for owner in range(100):
        circuit = after(Leased(str(owner)), start=circuit, now=60.0)

    assert circuit.leases == (Lease("0", 60.0),)
    assert circuit.holds("0")
    assert not circuit.holds("1")


def test_no_lease_is_given_where_none_is_needed_or_due():
    assert after(Leased("a")) is CLOSED
    assert after(Leased("a"), start=OPENED, now=59.0) is OPENED


def test_a_lease_is_not_doubled():
    config = CircuitsConfig(failure_threshold=2, probes=2)

    assert after(Leased("a"), start=PROBED, now=61.0, config=config) is PROBED


def test_a_probes_success_closes_it():
    closed = after(Succeeded("a"), start=PROBED)

    assert closed.is_blank
    assert closed.version == PROBED.version + 1


def test_a_probes_failure_opens_it_for_twice_as_long_each_time():
    circuit, now, waits = OPENED, 0.0, []
    for _ in range(6):
        now = circuit.open_until
        circuit = after(Leased("a"), Failed("x", "a"), start=circuit, now=now)
        waits.append(circuit.open_until - now)

    assert waits == [120.0, 240.0, 480.0, OPEN_AT_MOST, OPEN_AT_MOST, OPEN_AT_MOST]


def test_a_base_above_the_ceiling_is_kept():
    config = CircuitsConfig(failure_threshold=1, open_for=2000.0)

    assert after(FAILED, config=config).open_until == 2000.0


def test_openings_beyond_any_float_still_open():
    worn = Circuit(CircuitState.HALF_OPEN, openings=5000, leases=(Lease("a", 0.0),))

    assert after(Failed("x", "a"), start=worn).open_until == OPEN_AT_MOST


@pytest.mark.parametrize("owner", [None, "b"], ids=["no slot", "a foreign slot"])
@pytest.mark.parametrize("event", [Succeeded, lambda owner: Failed("x", owner), Neutral])
@pytest.mark.parametrize("circuit", [OPENED, PROBED], ids=["open", "half open"])
def test_a_completion_settles_only_its_own_slot(circuit, event, owner):
    assert after(event(owner), start=circuit, now=61.0) is circuit


@pytest.mark.parametrize("event", [Succeeded("a"), Failed("x", "a"), Neutral("a")])
def test_a_probe_that_ends_after_the_circuit_closed_says_nothing(event):
    failing = after(FAILED)

    assert after(event, start=failing) is failing


def test_a_slot_that_was_taken_over_is_lost():
    taken_over = after(Leased("b"), start=PROBED, now=120.0)

    assert taken_over.leases == (Lease("b", 120.0),)
    assert after(Succeeded("a"), start=taken_over) is taken_over


def test_several_probes_and_successes_may_be_asked_for():
    config = CircuitsConfig(failure_threshold=2, probes=2, successes=3)
    probed = after(Leased("a"), Leased("b"), Leased("c"), start=OPENED, now=60.0, config=config)
    halfway = after(Succeeded("a"), Succeeded("b"), start=probed, config=config)

    assert [lease.owner for lease in probed.leases] == ["a", "b"]
    assert (halfway.state, halfway.successes, halfway.leases) == (CircuitState.HALF_OPEN, 2, ())
    assert after(Leased("d"), Succeeded("d"), start=halfway, now=61.0, config=config).is_blank


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(None, DEMOTED_FOR), (3.0, 3.0), (0.0, 0.0), (9999.0, 300.0)]
)
def test_a_full_upstream_is_demoted_as_long_as_it_asks(retry_after, seconds):
    assert demotion_for(retry_after) == seconds


EVENTS = [
    Leased("a"),
    Leased("b"),
    Succeeded(),
    Succeeded("a"),
    FAILED,
    Failed("x", "a"),
    Failed("x", "b"),
    Neutral("a"),
    "wait",
]


def test_every_sequence_of_events_keeps_what_must_hold():
    """Level by level: what two sequences lead to alike is followed once."""
    reached = {(after(FAILED, FAILED), 0.0), (CLOSED, 0.0)}
    for _ in range(7):
        following = set()
        for (circuit, now), event in product(reached, EVENTS):
            if event == "wait":
                following.add((circuit, now + CONFIG.open_for))
                continue
            following_circuit = advance(circuit, event, now=now, config=CONFIG)
            hold(circuit, event, following_circuit, now)
            following.add((replace(following_circuit, version=0), now))
        reached = following

    assert len(reached) > 100


def hold(before, event, circuit, now):
    assert len(circuit.leases) <= CONFIG.probes
    assert (circuit.state is CircuitState.HALF_OPEN) or not circuit.leases
    assert circuit.version == before.version + (circuit is not before)
    assert circuit.is_blank or circuit.failures < CONFIG.failure_threshold
    if circuit.state is CircuitState.OPEN and circuit is not before:
        assert circuit.open_until >= now + CONFIG.open_for
    if before.state is not CircuitState.CLOSED and circuit.state is CircuitState.CLOSED:
        assert isinstance(event, Succeeded)
        assert before.holds(event.owner)
    if isinstance(event, Leased) and circuit is not before:
        assert before.admits(now, CONFIG) is Admits.PROBE
        assert circuit.holds(event.owner)
    if circuit.admits(now, CONFIG) is Admits.NOTHING:
        due = circuit.changes_at(now, CONFIG)
        assert due > now
        assert circuit.admits(due, CONFIG) is Admits.PROBE
