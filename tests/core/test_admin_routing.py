"""The routing panel of one assignment."""

import pytest

from llmgw.core.admin_capabilities import Answer
from llmgw.core.admin_routing import find_seat, routing_view
from llmgw.core.admin_seen import Sighting
from llmgw.core.admin_signals import Signal
from llmgw.core.admin_view import Look
from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import Pool
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import UpstreamState
from llmgw.core.types import AssignmentId, Provenance, RouteClass
from tests.builders import account
from tests.fakes.admin import DAY, NIGHT, fleet_of, known, two_pools

NOW = 1000.0
HTTP, SSE, WEBSOCKET = RouteClass.HTTP, RouteClass.SSE, RouteClass.WEBSOCKET
SEAT = (DAY, AssignmentId("day/sun"))


def panel(state: UpstreamState, *, pool: str = "day", name: str = "sun", **fields):
    config = two_pools()
    given = {"circuits": {}, "seen": {}, "now": NOW, "ticks": 60.0, **fields}
    found = config.pool(pool) or Pool(DAY, (name,))
    return routing_view(Look(config, fleet_of(state), **given), found, name)


def sun(discovery: ModelDiscovery) -> UpstreamState:
    return UpstreamState(two_pools().nodes[0], discovery=discovery)


def test_only_assignments_of_the_given_pools_are_found():
    pools = two_pools().pools

    assert find_seat(pools, "night/moon") == (pools[1], "moon")
    assert find_seat(pools[:1], "night/moon") is None
    assert find_seat(pools, "") is None


@pytest.mark.parametrize(
    ("state", "provenance"),
    [(State.KNOWN, Provenance.OBSERVED), (State.DEGRADED, Provenance.PRESERVED)],
)
def test_models_come_in_the_upstreams_order_with_their_provenance(state, provenance):
    listed = ModelDiscovery(state, ("b", "a"), listed_at=50.0, max_lens=(("a", 4096),))

    view = panel(sun(listed))

    assert [(one.id, one.provenance, one.max_model_len) for one in view.models] == [
        ("b", provenance, None),
        ("a", provenance, 4096),
    ]
    assert view.listed_ago == 10.0


def test_an_accounts_own_models_are_configured():
    state = UpstreamState(account("sun", models=("mine",)), discovery=known("theirs"))

    view = panel(state)

    assert [(one.id, one.provenance) for one in view.models] == [
        ("mine", Provenance.CONFIGURED),
        ("theirs", Provenance.OBSERVED),
    ]


def test_each_model_has_a_signal_in_each_lane():
    circuits = {
        CircuitKey(*SEAT, "a", HTTP): Circuit(
            CircuitState.OPEN, open_until=NOW + 1, reason="upstream_model_unavailable"
        ),
        CircuitKey(*SEAT, "a", WEBSOCKET): Circuit(CircuitState.OPEN, open_until=NOW),
    }
    seen = {SEAT: Sighting(served={("a", SSE): NOW})}

    [model] = panel(sun(known("a")), circuits=circuits, seen=seen).models

    assert (model.http, model.sse, model.websocket) == (
        Signal.REJECTED,
        Signal.SERVING,
        Signal.PROBE_DUE,
    )


def test_what_was_asked_for_without_being_advertised_is_shown_as_such():
    circuits = {CircuitKey(*SEAT, "lost", SSE): Circuit(failures=1)}
    seen = {SEAT: Sighting(served={("other", SSE): NOW})}

    models = panel(sun(known("a")), circuits=circuits, seen=seen).models

    assert [(one.id, one.provenance) for one in models] == [
        ("a", Provenance.OBSERVED),
        ("lost", None),
        ("other", None),
    ]


def test_nothing_of_another_pools_circuits_or_requests_is_in_it():
    theirs = (NIGHT, AssignmentId("night/sun"))
    circuits = {CircuitKey(*theirs, "secret", SSE): Circuit(failures=1)}
    seen = {theirs: Sighting(served={("secret", SSE): NOW}, streamed=True)}

    view = panel(sun(known("a")), circuits=circuits, seen=seen)

    assert [one.id for one in view.models] == ["a"]
    assert {one.answer for one in view.capabilities} == {Answer.UNKNOWN}


def test_a_list_that_was_never_read_has_no_age():
    view = panel(sun(ModelDiscovery(fails=2, last_error="timeout")))

    assert (view.listing, view.listed_ago) == (State.UNTRIED, None)
    assert (view.listing_fails, view.listing_error, view.models) == (2, "timeout", ())


def test_an_upstream_that_is_gone_has_no_panel():
    assert panel(sun(known("a")), name="gone") is None
