"""The order of candidates, and that the work for it does not grow with the pool."""

from collections import Counter
from itertools import pairwise

import pytest

from llmgw.core.affinity import LOOK_AT, Affinity, affinity_of
from llmgw.core.eligibility import Ask, Candidate, Eligibility
from llmgw.core.plan import build_plan, led_by
from llmgw.core.types import RouteClass, Strategy
from tests import builders
from tests.counting import calls

ASK = Ask("p", "m", "/v1/chat/completions", RouteClass.HTTP)
ROUND_ROBIN = Strategy.ROUND_ROBIN


def candidate(name, **fields):
    return Candidate(f"p/{name}", builders.node(name), **fields)


def eligible(*names, **fields):
    return Eligibility(ASK, tuple(candidate(name, **fields) for name in names))


def plan(eligibility, *, size=3, strategy=ROUND_ROBIN, turn=0, **fields):
    chosen = build_plan(eligibility, size=size, strategy=strategy, turn=turn, **fields)
    return [one.upstream.name for one in chosen.candidates]


def session(name):
    tied = affinity_of(pool="p", key="k", model="m", session=name, cache_key=None)
    return Affinity(session=tied.session)


def cache(name):
    tied = affinity_of(pool="p", key="k", model="m", session=None, cache_key=name)
    return Affinity(cache=tied.cache)


def test_round_robin_takes_turns_and_cuts_to_size():
    four = eligible("a", "b", "c", "d")

    assert plan(four, turn=0) == ["a", "b", "c"]
    assert plan(four, turn=3) == ["d", "a", "b"]
    assert plan(four, turn=4, size=9) == ["a", "b", "c", "d"]
    assert plan(eligible()) == []


def test_the_order_is_degraded_demoted_untried_then_the_strategy():
    places = [
        (degraded, demoted, untried)
        for degraded in (False, True)
        for demoted in (False, True)
        for untried in (False, True)
    ]
    everybody = tuple(
        candidate(str(rank), degraded=degraded, untried=untried)
        for rank, (degraded, _, untried) in enumerate(places)
    )
    demoted = {f"p/{rank}" for rank, place in enumerate(places) if place[1]}

    for turn in range(8):
        shuffled = Eligibility(ASK, everybody[turn:] + everybody[:turn])
        assert plan(shuffled, size=8, turn=turn, demoted=demoted) == list("01234567")


def test_a_demoted_candidate_is_tried_last_but_never_left_out():
    assert plan(eligible("a", "b"), demoted={"p/a"}) == ["b", "a"]
    assert plan(eligible("a"), demoted={"p/a"}) == ["a"]


def test_turns_are_taken_within_a_tier():
    mixed = Eligibility(ASK, (candidate("a"), candidate("x", degraded=True), candidate("b")))

    assert plan(mixed, turn=1) == ["b", "a", "x"]


def test_the_least_loaded_comes_first_and_turns_break_ties():
    load = {"a": 2, "b": 0, "c": 0, "d": 1}.get
    fields = {"strategy": Strategy.LEAST_LOAD, "load": lambda one: load(one.upstream.name)}

    assert plan(eligible(*"abcd"), size=4, **fields) == ["b", "c", "d", "a"]
    assert plan(eligible(*"abcd"), turn=2, **fields) == ["c", "b", "d"]


def test_the_least_recent_success_comes_first():
    at = {"a": 30.0, "b": 10.0, "c": 0.0}.get

    assert plan(
        eligible(*"abc"),
        strategy=Strategy.LEAST_RECENT_SUCCESS,
        last_success=lambda one: at(one.upstream.name),
    ) == ["c", "b", "a"]


def test_rendezvous_sends_a_model_to_the_same_place_every_time():
    orders = {
        tuple(plan(eligible(*"abcd"), strategy=Strategy.RENDEZVOUS, turn=turn))
        for turn in range(5)
    }

    assert len(orders) == 1


def test_a_session_comes_first_to_its_own_assignment_and_then_takes_turns():
    four = eligible(*"abcd")
    tied = session("s1")
    own = plan(four, affinity=tied)[0]

    orders = [plan(four, affinity=tied, turn=turn, size=4) for turn in range(4)]
    assert {order[0] for order in orders} == {own}
    assert len({order[1] for order in orders}) > 1
    assert all(sorted(order) == list("abcd") for order in orders)
    assert plan(four, affinity=tied, size=1) == [own]


def test_a_session_never_outranks_a_demotion():
    two = eligible("a", "b")
    own, other = plan(two, affinity=session("s1"))

    assert plan(two, affinity=session("s1"), demoted={f"p/{own}"}) == [other, own]


def test_sessions_are_spread():
    firsts = Counter(plan(eligible(*"abcd"), affinity=session(f"s{n}"))[0] for n in range(400))

    assert min(firsts.values()) > 60


@pytest.mark.parametrize("strategy", Strategy)
def test_a_prompt_cache_key_replaces_the_strategy(strategy):
    orders = {
        tuple(plan(eligible(*"abcd"), strategy=strategy, turn=turn, affinity=cache("c1")))
        for turn in range(4)
    }

    assert len(orders) == 1
    assert len({plan(eligible(*"abcd"), affinity=cache(f"c{n}"))[0] for n in range(60)}) == 4


def test_a_session_stands_before_the_cache_key():
    both = Affinity(session("s1").session, cache("c1").cache)
    by_session, by_both = session("s1"), plan(eligible(*"abcd"), affinity=both)

    assert by_both[0] == plan(eligible(*"abcd"), affinity=by_session)[0]


def cost(pool, **fields):
    """Calls of twenty plans, what is kept on the eligibility left out."""
    plan(pool, **fields)

    def twenty():
        for turn in range(20):
            assert len(plan(pool, turn=turn, **fields)) == 3

    return calls(twenty)


@pytest.mark.as_written("counts calls of Python functions")
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("affinity", [Affinity(), session("s"), cache("c")], ids=["", "s", "c"])
def test_a_thousand_candidates_cost_no_more_than_a_few(strategy, affinity):
    asked = Counter()

    def counted(one):
        asked[one.assignment] += 1
        return 0.0

    fields = {
        "strategy": strategy,
        "affinity": affinity,
        "load": counted,
        "last_success": counted,
        "demoted": {f"p/n{index}" for index in range(5)},
    }
    small, large = (eligible(*(f"n{index}" for index in range(size))) for size in (40, 1000))

    assert cost(large, **fields) <= 1.2 * cost(small, **fields)
    assert sum(asked.values()) <= LOOK_AT * 2 * 21


def test_a_thousand_sessions_stay_when_a_node_goes():
    names = [f"n{index}" for index in range(100)]
    firsts = [
        [plan(eligible(*kept), affinity=session(f"s{n}"))[0] for n in range(60)]
        for kept in (names, names[:-1])
    ]

    moved = sum(
        one != other
        for one, other in pairwise(firsts)
        for one, other in zip(one, other, strict=True)
    )
    assert moved <= 6


@pytest.mark.parametrize(
    ("size", "demoted", "names"),
    [
        pytest.param(3, (), "abc", id="as it was"),
        pytest.param(3, ("p/a",), "abc", id="demoted since"),
        pytest.param(2, ("p/a",), "ab", id="no longer in it"),
    ],
)
def test_who_was_asked_already_leads_the_plan(size, demoted, names):
    three = eligible("a", "b", "c")
    made = build_plan(three, size=size, strategy=ROUND_ROBIN, turn=0, demoted=frozenset(demoted))

    led = led_by(made, three.candidates[0])

    assert "".join(one.upstream.name for one in led.candidates) == names
