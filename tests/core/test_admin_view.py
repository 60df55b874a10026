"""What an operator is shown of upstreams and circuits, and what does not exist for one."""

from dataclasses import replace

import pytest

from llmgw.core.admin_seen import ErrorSeen, Sample, Sighting
from llmgw.core.admin_signals import Signal
from llmgw.core.admin_view import (
    CircuitCount,
    Look,
    Standing,
    advertised,
    circuit_view,
    standing_of,
    upstream_view,
    visible_pools,
)
from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import Config, Pool
from llmgw.core.discovery import State
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import NodeHealth, Status
from llmgw.core.types import AssignmentId, PoolName, RouteClass
from tests.builders import account, node
from tests.fakes.admin import DAY, NIGHT, fleet_of, known, two_pools

NOW, TICKS = 1000.0, 50.0
OPEN = Circuit(CircuitState.OPEN, openings=2, open_until=NOW + 30, reason="upstream_error")
HTTP, SSE = RouteClass.HTTP, RouteClass.SSE


def key(pool: str, name: str, model: str = "m", lane: RouteClass = HTTP) -> CircuitKey:
    return CircuitKey(PoolName(pool), AssignmentId(f"{pool}/{name}"), model, lane)


def look(config: Config, *states: UpstreamState, **fields) -> Look:
    states = states or tuple(UpstreamState(one) for one in config.upstreams)
    given = {"circuits": {}, "seen": {}, "now": NOW, "ticks": TICKS, **fields}
    return Look(config, fleet_of(*states), **given)


def pools_of(config: Config, name: str) -> tuple[Pool, ...]:
    user = next(one for one in config.admin.users if one.name == name)
    return visible_pools(config, user)


@pytest.mark.parametrize(
    ("operator", "pools"), [("ada", (DAY,)), ("grace", (DAY, NIGHT)), ("nobody", ())]
)
def test_an_operator_sees_the_pools_named_for_them(operator, pools):
    config = two_pools()

    mine = pools_of(config, operator)

    assert tuple(pool.name for pool in mine) == pools
    assert tuple(one.name for one in upstream_view(look(config), mine)) == pools


def test_circuits_of_another_pool_are_in_no_list_and_no_count():
    config = two_pools()
    circuits = {key("day", "sun"): OPEN, key("night", "moon"): OPEN, key("night", "sun"): OPEN}
    mine = pools_of(config, "ada")

    [day] = upstream_view(look(config, circuits=circuits), mine)
    shown = circuit_view(look(config, circuits=circuits), mine)

    assert day.assignments[0].circuits == CircuitCount(open=1)
    assert [one.assignment for one in shown] == ["day/sun"]


def test_two_pools_whose_assignments_share_an_id_are_told_apart():
    """`a` with `b/c`, and `a/b` with `c`."""
    config = Config(
        nodes=(node("b/c"), node("c", port=1)),
        pools=(Pool(PoolName("a"), ("b/c",)), Pool(PoolName("a/b"), ("c",))),
    )
    id = AssignmentId("a/b/c")
    theirs = CircuitKey(PoolName("a/b"), id, "secret", HTTP)
    seen = {(PoolName("a/b"), id): Sighting(samples=(Sample(7),))}
    one = look(config, circuits={theirs: OPEN}, seen=seen)

    [pool] = upstream_view(one, config.pools[:1])

    assert pool.assignments[0].circuits == CircuitCount()
    assert pool.assignments[0].total == Sample()
    assert circuit_view(one, config.pools[:1]) == ()


def test_an_assignment_is_shown_with_what_requests_left():
    config = two_pools(day=[node("sun", ring="big")])
    error = ErrorSeen(NOW, "upstream_cut", 200, "m")
    seen = {(DAY, AssignmentId("day/sun")): Sighting(samples=(Sample(4, 1),), errors=(error,))}
    state = UpstreamState(config.nodes[0], discovery=known("m", "n"))

    [pool] = upstream_view(look(config, state, seen=seen), pools_of(config, "ada"))
    [one] = pool.assignments

    assert (one.id, one.kind, one.ring, one.models) == ("day/sun", "node", "big", 2)
    assert (one.url, one.listing, one.errors) == ("http://127.0.0.1:8000", State.KNOWN, (error,))
    assert one.total.error_share == 0.25
    assert {signal.signal for signal in one.signals} == {Signal.UNVERIFIED}


def test_an_upstream_that_a_reload_has_taken_away_is_not_shown():
    config = two_pools(day=[node("sun"), node("gone", port=1)])

    [pool] = upstream_view(look(config, UpstreamState(config.nodes[0])), pools_of(config, "ada"))

    assert [one.name for one in pool.assignments] == ["sun"]


def test_trouble_is_what_requests_may_have_to_do_without():
    config = two_pools(day=[node("a"), node("b", port=1), node("c", port=2)])
    a, b, c = (UpstreamState(one) for one in config.nodes[:3])
    dead = replace(b, health=NodeHealth(checked=Status.DEAD))
    circuits = {key("day", "c"): OPEN}

    [pool] = upstream_view(look(config, a, dead, c, circuits=circuits), pools_of(config, "ada"))

    assert pool.troubled == 2


@pytest.mark.parametrize(
    ("upstream", "health", "standing"),
    [
        pytest.param(node("n"), NodeHealth(), Standing.HEALTHY, id="healthy"),
        pytest.param(
            node("n"), NodeHealth(checked=Status.DEGRADED), Standing.DEGRADED, id="degraded"
        ),
        pytest.param(node("n"), NodeHealth(checked=Status.DEAD), Standing.DEAD, id="dead"),
        pytest.param(
            node("n"), NodeHealth(streak=3, streak_at=TICKS), Standing.DEGRADED, id="overloaded"
        ),
        pytest.param(
            node("n"), NodeHealth(skip_until=TICKS + 1), Standing.SKIPPED, id="connection lost"
        ),
        pytest.param(
            node("n"),
            NodeHealth(checked=Status.DEAD, skip_until=TICKS + 1),
            Standing.DEAD,
            id="dead says more than skipped",
        ),
        pytest.param(node("n", drain=True), NodeHealth(), Standing.DRAINING, id="draining"),
        pytest.param(
            node("n", health_path=None), NodeHealth(), Standing.UNCHECKED, id="checks are off"
        ),
        pytest.param(account("a"), NodeHealth(), Standing.UNCHECKED, id="an account"),
    ],
)
def test_an_assignment_in_one_word(upstream, health, standing):
    assert standing_of(look(Config()), UpstreamState(upstream, health=health)) is standing


def test_a_node_that_an_operator_drained_is_draining():
    taken_out = look(Config(), draining=frozenset({"n"}))

    assert standing_of(taken_out, UpstreamState(node("n"))) is Standing.DRAINING


def test_models_of_an_account_begin_with_its_own():
    state = UpstreamState(account("a", models=("x", "y")), discovery=known("y", "z"))

    assert advertised(state) == ("x", "y", "z")


def test_circuits_are_counted_by_state():
    config = two_pools()
    half = Circuit(CircuitState.HALF_OPEN)
    circuits = {
        key("day", "sun", "a"): OPEN,
        key("day", "sun", "b"): half,
        key("day", "sun", "c"): Circuit(failures=1),
        key("day", "sun", "c", SSE): Circuit(failures=2),
    }

    [pool] = upstream_view(look(config, circuits=circuits), pools_of(config, "ada"))

    assert pool.assignments[0].circuits == CircuitCount(open=1, half_open=1, failing=2)


def test_circuits_that_stand_in_the_way_come_first():
    config = two_pools()
    circuits = {
        key("day", "sun", "failing"): Circuit(failures=1, reason="upstream_cut"),
        key("day", "sun", "due"): replace(OPEN, open_until=NOW),
        key("day", "sun", "shut"): OPEN,
    }

    shown = circuit_view(look(config, circuits=circuits), pools_of(config, "ada"))

    assert [one.model for one in shown] == ["shut", "due", "failing"]
    assert [one.due_at for one in shown] == [NOW + 30, NOW, None]
    assert (shown[0].signal, shown[0].openings, shown[0].reason) == (
        Signal.UNAVAILABLE,
        2,
        "upstream_error",
    )
