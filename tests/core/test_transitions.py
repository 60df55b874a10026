"""Which lines the log gets for a change."""

import pytest

from llmgw.core.discovery import Listed, ListingFailed, ModelDiscovery, advance
from llmgw.core.health import Failed, NodeHealth, Passed
from llmgw.core.health import advance as advance_health
from llmgw.core.transitions import (
    MAX_NAME_CHARS,
    MAX_NAMES,
    discovery_notices,
    health_notice,
    is_list_change,
    never_listed_notice,
)

LLAMA = Listed(("llama",), 0.0)
BOTH = Listed(("llama", "qwen"), 0.0)
TURNED = Listed(("qwen", "llama"), 0.0)
EMPTY = Listed((), 0.0)
FAILED = ListingFailed("status 500")

DISCOVERED = "models discovered"
RECOVERED = "model discovery recovered"
NO_MODELS = "node reports no models"
FAILING = "model discovery failed"
EXPIRED = "model discovery expired"
CHANGED = "node model list changed"


def steps(*events, is_account=False):
    before = ModelDiscovery()
    for event in events:
        after = advance(before, event, fail_threshold=3, is_account=is_account)
        yield before, after
        before = after


def messages(*events) -> list[str]:
    return [
        notice.message
        for before, after in steps(*events)
        for notice in discovery_notices(before, after)
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([LLAMA], [DISCOVERED], id="the first list is no change of one"),
        pytest.param([LLAMA, LLAMA], [DISCOVERED], id="the same list again"),
        pytest.param([LLAMA, BOTH], [DISCOVERED, CHANGED], id="another list"),
        pytest.param([BOTH, TURNED], [DISCOVERED], id="the same names in another order"),
        pytest.param([EMPTY], [], id="one empty list"),
        pytest.param([EMPTY] * 3, [NO_MODELS], id="two empty lists, and a third"),
        pytest.param([EMPTY, EMPTY, LLAMA], [NO_MODELS, DISCOVERED], id="from empty"),
        pytest.param([LLAMA, EMPTY, EMPTY], [DISCOVERED, NO_MODELS], id="to empty"),
        pytest.param([FAILED, FAILED], [], id="failures of a node never listed"),
        pytest.param([FAILED] * 5, [EXPIRED], id="expired once, however long it lasts"),
        pytest.param([*[FAILED] * 3, LLAMA], [EXPIRED, RECOVERED], id="first list after expiry"),
        pytest.param([*[FAILED] * 3, EMPTY, LLAMA], [EXPIRED, RECOVERED], id="expired, one empty"),
        pytest.param([LLAMA, FAILED, FAILED], [DISCOVERED, FAILING], id="degraded once"),
        pytest.param([LLAMA, FAILED, LLAMA], [DISCOVERED, FAILING, RECOVERED], id="and back"),
        pytest.param(
            [LLAMA, FAILED, BOTH],
            [DISCOVERED, FAILING, RECOVERED, CHANGED],
            id="back with another list",
        ),
        pytest.param(
            [LLAMA, *[FAILED] * 3, BOTH],
            [DISCOVERED, FAILING, EXPIRED, RECOVERED, CHANGED],
            id="from expired with another list",
        ),
        pytest.param(
            [EMPTY, EMPTY, *[FAILED] * 3, EMPTY, EMPTY],
            [NO_MODELS, EXPIRED, NO_MODELS],
            id="empty, expired and empty again",
        ),
    ],
)
def test_each_transition_gives_its_line_and_no_other(events, expected):
    assert messages(*events) == expected


def test_a_line_tells_the_failures_and_our_words_for_them():
    *_, (_, after) = steps(FAILED, FAILED)
    expired = advance(after, FAILED, fail_threshold=3)

    (notice,) = discovery_notices(after, expired)

    assert notice.is_warning
    assert notice.fields == {"error": "status 500", "fails": 3}


def test_a_change_tells_what_came_and_went():
    *_, (before, after) = steps(BOTH, Listed(("phi", "qwen"), 0.0))

    (notice,) = discovery_notices(before, after)

    assert notice.fields == {"models": 2, "added": ["phi"], "removed": ["llama"]}


def test_a_line_holds_few_names_and_short_ones():
    many = Listed(tuple(f"{n:06}" + "x" * 1000 for n in range(100_000)), 0.0)
    ((before, after),) = steps(many)

    (notice,) = discovery_notices(before, after)

    assert notice.fields["models"] == 100_000
    assert len(notice.fields["names"]) == MAX_NAMES
    assert {len(name) for name in notice.fields["names"]} == {MAX_NAME_CHARS}


def test_nothing_ever_leads_back_to_untried():
    (_, known), *_ = steps(LLAMA)

    assert discovery_notices(known, ModelDiscovery()) == ()


@pytest.mark.parametrize(
    ("events", "changed"),
    [
        pytest.param([LLAMA], True, id="the first list"),
        pytest.param([LLAMA, LLAMA], False, id="the same"),
        pytest.param([BOTH, TURNED], False, id="another order"),
        pytest.param([LLAMA, BOTH], True, id="another list"),
        pytest.param([LLAMA, EMPTY], False, id="an empty one that is not believed"),
        pytest.param([LLAMA, EMPTY, EMPTY], True, id="names dropped"),
        pytest.param([EMPTY, EMPTY], True, id="the first list is an empty one"),
        pytest.param([LLAMA, FAILED], False, id="a failure"),
    ],
)
def test_a_list_changes_with_its_names(events, changed):
    *_, (before, after) = steps(*events)

    assert is_list_change(before, after) is changed


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param([FAILED], True, id="a failure at once"),
        pytest.param([FAILED] * 9, True, id="many failures"),
        pytest.param([EMPTY], False, id="an empty list"),
        pytest.param([LLAMA, FAILED], False, id="it has listed before"),
    ],
)
def test_an_account_that_lists_nothing_is_told_of_its_models_key(events, told):
    *_, (_, after) = steps(*events, is_account=True)
    notice = never_listed_notice(after)

    assert (notice is not None) is told
    assert notice is None or "`models`" in str(notice.fields["hint"])


def test_health_gives_one_line_for_each_change_of_status():
    health, told = NodeHealth(), []
    checks = [*[Failed(connection=False)] * 5, Passed(), Passed()]

    for event in checks:
        after = advance_health(health, event, fail_threshold=3)
        notice = health_notice(health, after)
        told += [] if notice is None else [(notice.message, notice.is_warning)]
        health = after

    assert told == [("node degraded", True), ("node dead", True), ("node healthy", False)]
