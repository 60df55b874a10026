"""What a pool offers, and that serving health has no say in it."""

import pytest

from llmgw.core.catalog import Entry, build_catalog
from llmgw.core.discovery import Listed, ListingFailed, ModelDiscovery, advance
from llmgw.core.fleet import UpstreamState
from llmgw.core.health import NodeHealth, Status
from tests import builders
from tests.counting import calls, grows_evenly


def listed(*names, fails=0, is_account=False, **fields):
    state = ModelDiscovery()
    for event in (Listed(names, 0.0, **fields), *[ListingFailed("x")] * fails):
        state = advance(state, event, fail_threshold=3, is_account=is_account)
    return state


def node(name, *names, **fields):
    return f"p/{name}", UpstreamState(builders.node(name), discovery=listed(*names, **fields))


def account(name, *names, models=(), **fields):
    state = listed(*names, is_account=True, **fields) if names else ModelDiscovery()
    return f"p/{name}", UpstreamState(builders.account(name, models=models), discovery=state)


def test_it_is_the_union_of_what_is_configured_and_advertised_in_order():
    catalog = build_catalog([node("a", "x", "y"), node("b", "y", "z")], configured=["c", "y", "c"])

    assert list(catalog.entries) == ["c", "y", "x", "z"]
    assert catalog.knows("z")
    assert not catalog.knows("Z")
    assert [entry.model for entry in catalog.visible("yz".__contains__)] == ["y", "z"]


def test_a_pool_of_accounts_lists_what_these_advertise_and_still_knows_the_configured():
    catalog = build_catalog([account("a", "x")], configured=["c"])

    assert list(catalog.entries) == ["x"]
    assert catalog.knows("c")
    assert not catalog.knows("d")


def test_an_account_offers_its_own_models_before_those_that_it_lists():
    catalog = build_catalog(
        [account("a", "m", "own", models=("own", "n")), node("b", "m", fails=9), account("c")],
        configured=["nobody"],
    )

    assert list(catalog.entries) == ["nobody", "own", "n", "m"]


def test_the_smallest_length_that_anyone_tells_counts():
    catalog = build_catalog(
        [
            node("a", "m", "n", max_lens=(("m", 8192),)),
            node("b", "m", max_lens=(("m", 4096),)),
            node("c", "m"),
            node("d", "m", max_lens=(("m", 4097),)),
        ],
        configured=[],
    )

    assert catalog.entries["m"].max_model_len == 4096
    assert catalog.entries["n"].max_model_len is None


@pytest.mark.parametrize(
    ("assignments", "only_accounts", "has_untried"),
    [
        ([], False, False),
        ([node("a", "m")], False, False),
        ([account("a", "m")], True, False),
        ([account("a", "m"), account("b")], True, True),
        ([account("a", "m"), node("b", "m")], False, False),
    ],
)
def test_it_knows_what_kind_of_pool_it_is_of(assignments, only_accounts, has_untried):
    catalog = build_catalog(assignments, configured=[])

    assert (catalog.only_accounts, catalog.has_untried) == (only_accounts, has_untried)


def test_health_never_changes_it():
    name, state = node("a", "m")
    dead = UpstreamState(state.upstream, NodeHealth(Status.DEAD, fails=9), state.discovery)

    assert build_catalog([(name, dead)], configured=[]) == build_catalog(
        [(name, state)], configured=[]
    )


MODELS = tuple(f"model-{number}" for number in range(30))


def nodes(count):
    return [node(f"n{number}", *MODELS) for number in range(count)]


def test_each_further_node_costs_as_much_as_the_one_before():
    pools = [nodes(count) for count in (10, 20, 30, 40)]

    assert grows_evenly([calls(build_catalog, pool, configured=()) for pool in pools])


@pytest.mark.parametrize("count", [1, 40])
def test_an_entry_is_made_once_and_not_for_each_node(count):
    pool = nodes(count)

    made = calls(build_catalog, pool, configured=(), of=Entry.__init__)

    assert made == len(MODELS)


def test_a_further_node_with_the_same_list_costs_the_same_however_long_the_list_is():
    def cost(count: int, models: tuple[str, ...]) -> int:
        shared = listed(*models, max_lens=tuple((name, 8192) for name in models))
        pool = [("p/n", UpstreamState(builders.node("n"), discovery=shared))] * count
        return calls(build_catalog, pool, configured=())

    assert cost(2, MODELS) - cost(1, MODELS) == cost(2, MODELS[:1]) - cost(1, MODELS[:1])
