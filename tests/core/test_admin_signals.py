"""Serving signals: one word for what circuits and successes say."""

import pytest

from llmgw.core.admin_seen import UNSEEN, Sighting
from llmgw.core.admin_signals import LaneSignal, Signal, lane_signals, model_signal, signal_of
from llmgw.core.circuit import CLOSED, Circuit, CircuitState, Lease
from llmgw.core.config import CircuitsConfig
from llmgw.core.types import RouteClass

NOW = 1000.0
CONFIG = CircuitsConfig(open_for=60.0)
HTTP, SSE, WEBSOCKET = RouteClass.HTTP, RouteClass.SSE, RouteClass.WEBSOCKET


def opened(reason: str = "upstream_error", until: float = NOW + 10) -> Circuit:
    return Circuit(CircuitState.OPEN, openings=1, open_until=until, reason=reason)


def half_open(*taken_at: float) -> Circuit:
    leases = tuple(Lease(f"owner-{at}", at) for at in taken_at)
    return Circuit(CircuitState.HALF_OPEN, openings=1, leases=leases)


@pytest.mark.parametrize(
    ("circuit", "has_served", "signal"),
    [
        pytest.param(CLOSED, False, Signal.UNVERIFIED, id="nothing is known"),
        pytest.param(CLOSED, True, Signal.SERVING, id="a success was seen"),
        pytest.param(Circuit(failures=2), True, Signal.SERVING, id="failing, but still closed"),
        pytest.param(Circuit(failures=2), False, Signal.UNVERIFIED, id="failing, never served"),
        pytest.param(opened(), True, Signal.UNAVAILABLE, id="open: an earlier success is old"),
        pytest.param(
            opened("upstream_model_unavailable"), False, Signal.REJECTED, id="the model refused"
        ),
        pytest.param(
            opened("upstream_unauthorized"), False, Signal.REJECTED, id="our credential refused"
        ),
        pytest.param(opened(until=NOW), False, Signal.PROBE_DUE, id="open, and its time is over"),
        pytest.param(half_open(NOW - 1), False, Signal.PROBING, id="a probe is at work"),
        pytest.param(half_open(), False, Signal.PROBE_DUE, id="half open, nobody at work"),
        pytest.param(half_open(NOW - 60), False, Signal.PROBE_DUE, id="a probe that was lost"),
    ],
)
def test_the_signal_of_one_circuit(circuit, has_served, signal):
    assert signal_of(circuit, has_served=has_served, now=NOW, config=CONFIG) is signal


def test_lanes_are_told_apart():
    seen = Sighting(served={("m", SSE): NOW})
    circuits = {("m", HTTP): opened()}

    words = [
        model_signal("m", lane, circuits, seen, now=NOW, config=CONFIG)
        for lane in (HTTP, SSE, WEBSOCKET)
    ]

    assert words == [Signal.UNAVAILABLE, Signal.SERVING, Signal.UNVERIFIED]


def test_a_lane_says_first_what_needs_attention_and_counts_the_rest():
    seen = Sighting(served={("a", HTTP): NOW, ("b", HTTP): NOW})
    circuits = {("c", HTTP): opened("upstream_model_unavailable")}

    http, sse, _ = lane_signals("abcd", circuits, seen, now=NOW, config=CONFIG)

    assert http.signal is Signal.REJECTED
    assert http.models == (
        (Signal.REJECTED, 1),
        (Signal.SERVING, 2),
        (Signal.UNVERIFIED, 1),
    )
    assert http.is_mixed
    assert sse == LaneSignal(SSE, Signal.UNVERIFIED, ((Signal.UNVERIFIED, 4),))
    assert not sse.is_mixed


def test_without_models_nothing_is_verified():
    for one in lane_signals((), {}, UNSEEN, now=NOW, config=CONFIG):
        assert one == LaneSignal(one.lane, Signal.UNVERIFIED)


def test_a_model_counts_although_it_is_no_longer_advertised():
    circuits = {("gone", SSE): opened()}

    _, sse, _ = lane_signals(["m"], circuits, UNSEEN, now=NOW, config=CONFIG)

    assert sse.models == ((Signal.UNAVAILABLE, 1), (Signal.UNVERIFIED, 1))
