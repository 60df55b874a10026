"""Who may serve, in which order reasons are looked for, and how long the answer holds."""

from dataclasses import replace

import pytest

from llmgw.core.catalog import build_catalog
from llmgw.core.circuit import Circuit, CircuitKey, CircuitState, Lease
from llmgw.core.config import CircuitsConfig
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.eligibility import (
    Ask,
    Eligibility,
    Exclusion,
    refusal,
    select_eligible,
)
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import NodeHealth, Status
from llmgw.core.types import Provenance, RouteClass
from tests import builders

ASK = Ask("p", "m", "/v1/chat/completions", RouteClass.HTTP)
KNOWN = ModelDiscovery(State.KNOWN, ("m",))
OTHER = ModelDiscovery(State.KNOWN, ("x",))
EMPTY = ModelDiscovery(State.KNOWN_EMPTY, ())
EXPIRED = ModelDiscovery(State.EXPIRED, ("m",))
SKIPPED = NodeHealth(skip_until=110.0)
DEAD = NodeHealth(Status.DEAD, fails=3)
OPEN = Circuit(CircuitState.OPEN, open_until=1030.0)
NOW, WALL = 100.0, 1000.0


def on(name, *, health=None, discovery=KNOWN, account=False, **fields):
    upstream = builders.account(name, **fields) if account else builders.node(name, **fields)
    return f"p/{name}", UpstreamState(upstream, health or NodeHealth(), discovery)


def select(*assignments, ask=ASK, circuits=(), **fields):
    return select_eligible(
        ask,
        assignments,
        {CircuitKey("p", f"p/{name}", "m", ask.lane): one for name, one in dict(circuits).items()},
        now=NOW,
        wall=WALL,
        overload_threshold=3,
        config=CircuitsConfig(),
        **fields,
    )


def names(eligibility):
    return [one.upstream.name for one in eligibility.candidates]


EXCLUDED = [
    pytest.param(on("a", ring="r"), {}, Exclusion.RING, id="a node of a ring"),
    pytest.param(on("a", discovery=OTHER), {}, Exclusion.MISSING, id="missing"),
    pytest.param(on("a", discovery=EMPTY), {}, Exclusion.EMPTY, id="empty"),
    pytest.param(on("a", discovery=EXPIRED), {}, Exclusion.EXPIRED, id="expired"),
    pytest.param(on("a", health=DEAD), {}, Exclusion.DEAD, id="dead"),
    pytest.param(on("a", health=SKIPPED), {}, Exclusion.SKIPPED, id="on the skip list"),
    pytest.param(on("a"), {"circuits": {"a": OPEN}}, Exclusion.CIRCUIT_OPEN, id="open circuit"),
    pytest.param(
        on("a", routes=frozenset({"/v1/embeddings"})),
        {},
        Exclusion.CAPABILITY,
        id="without the route",
    ),
    pytest.param(
        on("a", websocket=False),
        {"ask": ASK._replace(websocket=True)},
        Exclusion.CAPABILITY,
        id="without websocket",
    ),
    pytest.param(on("a", drain=True), {}, Exclusion.DRAINING, id="drained by configuration"),
    pytest.param(on("a"), {"draining": {"a"}}, Exclusion.DRAINING, id="drained by command"),
]


@pytest.mark.parametrize(("assignment", "fields", "reason"), EXCLUDED)
def test_an_assignment_is_left_out_for_a_reason(assignment, fields, reason):
    eligibility = select(assignment, on("b"), **fields)

    assert names(eligibility) == ["b"]
    assert eligibility.reasons == {"p/a": reason}
    assert eligibility.excluded == {reason: 1}


FAULTS = [
    (Exclusion.RING, {"ring": "r"}),
    (Exclusion.MISSING, {"discovery": OTHER}),
    (Exclusion.DEAD, {"health": DEAD}),
    (Exclusion.SKIPPED, {"health": SKIPPED}),
    (Exclusion.CIRCUIT_OPEN, {}),
    (Exclusion.CAPABILITY, {"routes": frozenset()}),
    (Exclusion.DRAINING, {"drain": True}),
]


@pytest.mark.parametrize("first", range(len(FAULTS) - 1))
def test_the_first_reason_in_order_counts(first):
    later = {key: value for _, fault in FAULTS[first + 1 :] for key, value in fault.items()}
    fields = later | FAULTS[first][1]
    circuits = {"a": OPEN} if first <= 4 else {}

    eligibility = select(on("a", **fields), on("b"), circuits=circuits)

    assert eligibility.reasons["p/a"] is FAULTS[first][0]


@pytest.mark.parametrize(("ring", "served"), [("r", ["a"]), (None, ["b", "c"]), ("nowhere", [])])
def test_a_ring_model_is_served_on_its_ring_and_no_other_there(ring, served):
    assignments = on("a", ring="r"), on("b"), on("c", account=True)

    assert names(select(*assignments, ask=ASK._replace(ring=ring))) == served


def test_a_route_that_names_no_model_goes_wherever_something_serves():
    ask = ASK._replace(model=None, pin="p/a")

    eligibility = select(on("a", ring="r", discovery=EMPTY), on("b"), ask=ask)

    assert names(eligibility) == ["a"]
    assert not eligibility.candidates[0].untried


def test_candidates_say_how_they_are():
    overloaded = NodeHealth(streak=3, streak_at=95.0)
    due = Circuit(CircuitState.OPEN, open_until=999.0)
    eligibility = select(
        on("a"),
        on("b", health=NodeHealth(Status.DEGRADED, fails=1)),
        on("c", health=overloaded),
        on("d", discovery=ModelDiscovery()),
        on("e", account=True, models=("m",), discovery=EMPTY),
        on("f", account=True, discovery=EXPIRED),
        circuits={"a": due, "b": Circuit(failures=1)},
    )

    found = {one.upstream.name: one for one in eligibility.candidates}
    assert list(found) == ["a", "b", "c", "d", "e", "f"]
    assert [name for name, one in found.items() if one.degraded] == ["b", "c"]
    assert [name for name, one in found.items() if one.untried] == ["d"]
    assert [name for name, one in found.items() if one.probe] == ["a"]
    assert [name for name, one in found.items() if one.is_account] == ["e", "f"]
    assert [one.provenance for one in found.values()] == [
        *[Provenance.OBSERVED] * 3,
        None,
        Provenance.CONFIGURED,
        Provenance.PRESERVED,
    ]


def test_circuits_are_kept_by_lane():
    assert names(select(on("a"), circuits={"a": OPEN})) == []
    sse = ASK._replace(lane=RouteClass.SSE)
    key = CircuitKey("p", "p/a", "m", RouteClass.HTTP)
    eligibility = select_eligible(
        sse,
        [on("a")],
        {key: OPEN},
        now=NOW,
        wall=WALL,
        overload_threshold=3,
        config=CircuitsConfig(),
    )
    assert names(eligibility) == ["a"]


def test_skipped_nodes_serve_when_nothing_else_is_left():
    eligibility = select(
        on("a", health=SKIPPED),
        on("b", health=DEAD),
        on("c", health=SKIPPED, drain=True),
    )

    assert names(eligibility) == ["a"]
    assert eligibility.reasons == {"p/b": Exclusion.DEAD, "p/c": Exclusion.SKIPPED}


@pytest.mark.parametrize(
    ("pinned", "served", "reason"),
    [
        (on("a"), ["a"], None),
        (on("a", health=SKIPPED), ["a"], None),
        (on("a", health=DEAD), [], Exclusion.DEAD),
        (on("a", discovery=OTHER), [], Exclusion.MISSING),
    ],
)
def test_a_hard_pin_is_never_left(pinned, served, reason):
    eligibility = select(pinned, on("b"), ask=ASK._replace(pin="p/a"))

    assert names(eligibility) == served
    assert eligibility.reasons["p/b"] is Exclusion.PINNED
    assert eligibility.reasons.get("p/a") is reason


@pytest.mark.parametrize(
    ("assignment", "circuit", "until"),
    [
        pytest.param(on("a"), None, float("inf"), id="nothing changes by itself"),
        pytest.param(on("a", health=SKIPPED), None, 110.0, id="the skip list"),
        pytest.param(
            on("a", health=NodeHealth(streak=3, streak_at=95.0)), None, 105.0, id="the streak"
        ),
        pytest.param(on("a"), OPEN, 130.0, id="an open circuit, by the other clock"),
        pytest.param(
            on("a"),
            Circuit(CircuitState.HALF_OPEN, leases=(Lease("o", 990.0),)),
            150.0,
            id="a lease that may be taken over",
        ),
    ],
)
def test_it_holds_until_time_alone_changes_it(assignment, circuit, until):
    eligibility = select(assignment, on("b"), circuits={"a": circuit} if circuit else {})

    assert eligibility.valid_until == until


def test_what_is_derived_of_it_is_computed_once():
    found = select(on("a"))

    assert found.tiers[1][0] is found.tiers[1][0]
    assert found.tiers[0][0].ring is found.tiers[0][0].ring
    assert found.excluded is found.excluded


def test_an_empty_pool_has_no_candidates():
    assert select() == Eligibility(ASK, ())


def refused(*assignments, ask=ASK, configured=(), **fields):
    eligibility = select(*assignments, ask=ask, **fields)
    return refusal(eligibility, build_catalog(assignments, configured=configured), now=NOW)


@pytest.mark.parametrize(
    ("assignments", "fields", "headers"),
    [
        pytest.param([], {}, {"x-should-retry": "false"}, id="nobody at all"),
        pytest.param(
            [on("a", discovery=OTHER), on("b", discovery=EMPTY), on("c", discovery=OTHER)],
            {},
            {"x-should-retry": "false", "x-llmgw-excluded": "missing=2, empty=1"},
            id="nobody has the model",
        ),
        pytest.param(
            [on("a", discovery=OTHER), on("b", ring="r")],
            {},
            {"x-should-retry": "false", "x-llmgw-excluded": "ring=1, missing=1"},
            id="rings do not count",
        ),
        pytest.param(
            [on("a", discovery=OTHER), on("b", discovery=EXPIRED)],
            {},
            {"retry-after": "5", "x-llmgw-excluded": "missing=1, expired=1"},
            id="one may come back",
        ),
        pytest.param(
            [on("a")],
            {"circuits": {"a": OPEN}},
            {"retry-after": "30", "x-llmgw-excluded": "circuit_open=1"},
            id="the circuit says when",
        ),
        pytest.param(
            [on("a")],
            {"circuits": {"a": replace(OPEN, open_until=5000.0)}},
            {"retry-after": "60", "x-llmgw-excluded": "circuit_open=1"},
            id="but not longer than a minute",
        ),
        pytest.param(
            [on("a"), on("b", health=DEAD)],
            {"circuits": {"a": replace(OPEN, open_until=1000.1)}},
            {"retry-after": "1", "x-llmgw-excluded": "dead=1, circuit_open=1"},
            id="at least a second",
        ),
    ],
)
def test_where_nobody_serves_the_client_is_told_why(assignments, fields, headers):
    error = refused(*assignments, **fields)

    assert (error.status, error.code, error.type) == (
        503,
        "no_eligible_backend",
        "service_unavailable",
    )
    assert (error.message, error.param) == ("no healthy node available", "model")
    assert dict(error.headers) == headers


def test_where_all_leases_were_lost_the_circuits_stood_in_the_way():
    error = refused(on("a"), circuits={"a": replace(OPEN, open_until=999.0)})

    assert error.code == "no_eligible_backend"
    assert dict(error.headers) == {"retry-after": "60", "x-llmgw-excluded": "circuit_open=1"}


@pytest.mark.parametrize(
    ("pinned", "headers"),
    [
        (on("a", health=DEAD), {"retry-after": "5", "x-llmgw-excluded": "dead=1, pinned=1"}),
        (
            on("a", discovery=OTHER),
            {"x-should-retry": "false", "x-llmgw-excluded": "missing=1, pinned=1"},
        ),
    ],
)
def test_a_pin_that_cannot_serve_has_an_error_of_its_own(pinned, headers):
    error = refused(pinned, on("b"), ask=ASK._replace(pin="p/a"))

    assert (error.status, error.code) == (503, "pinned_assignment_unavailable")
    assert dict(error.headers) == headers


LISTED = on("a", account=True, discovery=OTHER)


@pytest.mark.parametrize(
    ("assignments", "configured", "status"),
    [
        pytest.param([LISTED], [], 404, id="an account pool that has all told"),
        pytest.param([LISTED], ["m"], 503, id="configured"),
        pytest.param([LISTED, on("b", discovery=OTHER)], [], 503, id="a pool with nodes"),
        pytest.param(
            [LISTED, on("b", account=True, discovery=ModelDiscovery(), routes=frozenset())],
            [],
            503,
            id="one has not told yet",
        ),
    ],
)
def test_a_model_that_no_account_knows_is_not_found(assignments, configured, status):
    error = refused(*assignments, configured=configured)

    assert error.status == status
    assert error.code == ("model_not_found" if status == 404 else "no_eligible_backend")
    assert error.param == "model"


def test_a_lost_id_in_a_pool_of_accounts_is_not_about_a_model():
    assert refused(ask=ASK._replace(model=None)).status == 503
