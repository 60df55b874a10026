"""What listings make of an upstream's list, over every short history."""

from collections.abc import Iterator
from itertools import groupby

import pytest

from llmgw.core.discovery import (
    Listed,
    ListingFailed,
    ModelDiscovery,
    ModelExclusion,
    State,
    advance,
)
from llmgw.core.types import Provenance

NOW = 50.0
LLAMA = Listed(("llama",), NOW, (("llama", 4096),))
QWEN = Listed(("qwen", "phi"), NOW)
EMPTY = Listed((), NOW)
FAILED = ListingFailed("status 500")
ALPHABET = (LLAMA, QWEN, EMPTY, FAILED)

Event = Listed | ListingFailed
History = tuple[Event, ...]

TO = {
    State.UNTRIED: [],
    State.KNOWN: [LLAMA],
    State.KNOWN_EMPTY: [EMPTY, EMPTY],
    State.DEGRADED: [LLAMA, FAILED],
    State.EXPIRED: [LLAMA, FAILED, FAILED, FAILED],
}


def after(*events: Event, threshold: int = 3, is_account: bool = False) -> ModelDiscovery:
    found = ModelDiscovery()
    for event in events:
        found = advance(found, event, fail_threshold=threshold, is_account=is_account)
    return found


def histories(threshold: int, is_account: bool) -> Iterator[tuple[History, ModelDiscovery]]:
    """Every sequence of up to six listings, with what it leads to."""
    level: list[tuple[History, ModelDiscovery]] = [((), ModelDiscovery())]
    for _ in range(6):
        level = [
            (
                (*events, event),
                advance(before, event, fail_threshold=threshold, is_account=is_account),
            )
            for events, before in level
            for event in ALPHABET
        ]
        yield from level


def believed_by(events: History) -> tuple[tuple[str, ...] | None, History]:
    """By the history alone: the last list to be believed, and what came after it."""
    for end in range(len(events), 0, -1):
        last = events[end - 1]
        if isinstance(last, Listed) and last.names:
            return last.names, events[end:]
        if events[max(0, end - 2) : end] == (EMPTY, EMPTY):
            return (), events[end:]
    return None, events


def expected_state(events: History, threshold: int, is_account: bool) -> State:
    names, since = believed_by(events)
    runs = [len(list(run)) for event, run in groupby(since) if event == FAILED]
    if names is None and is_account:
        return State.UNTRIED
    if max(runs, default=0) >= threshold:
        return State.EXPIRED
    if names is None:
        return State.UNTRIED
    if not names:
        return State.KNOWN_EMPTY
    return State.DEGRADED if runs else State.KNOWN


@pytest.mark.parametrize("is_account", [False, True], ids=["node", "account"])
@pytest.mark.parametrize("threshold", [1, 2, 3, 4])
def test_every_history_of_up_to_six_listings_gives_what_the_rules_say(threshold, is_account):
    for events, found in histories(threshold, is_account):
        names, _ = believed_by(events)
        trailing = [list(run) for event, run in groupby(events) if event == FAILED]
        fails = len(trailing[-1]) if events[-1] == FAILED else 0

        assert found.state is expected_state(events, threshold, is_account), events
        assert found.names == names, events
        assert found.fails == fails, events
        assert found.last_error == ("status 500" if fails else ""), events
        assert (found.listed_at is None) == all(event == FAILED for event in events), events


@pytest.mark.parametrize("is_account", [False, True], ids=["node", "account"])
def test_no_history_lets_an_upstream_serve_a_model_against_the_table(is_account):
    for events, found in histories(3, is_account):
        excluded = found.exclusion("llama", is_account=is_account)
        if found.state is State.UNTRIED:
            assert excluded is None, events
        elif excluded is None:
            assert "llama" in (found.names or ()), events
            assert is_account or found.state in (State.KNOWN, State.DEGRADED), events


class TestExclusion:
    @pytest.mark.parametrize(
        ("events", "excluded"),
        [
            pytest.param([], None, id="never asked: any model may be there"),
            pytest.param([FAILED, FAILED], None, id="failures below the threshold"),
            pytest.param([EMPTY], None, id="a first empty list is not believed"),
            pytest.param([LLAMA], ModelExclusion.MISSING, id="listed without it"),
            pytest.param([LLAMA, FAILED], ModelExclusion.MISSING, id="last known good"),
            pytest.param([EMPTY, EMPTY], ModelExclusion.EMPTY, id="two empty lists"),
            pytest.param([EMPTY, EMPTY, FAILED], ModelExclusion.EMPTY, id="empty, then a failure"),
            pytest.param([FAILED] * 3, ModelExclusion.EXPIRED, id="failures at the threshold"),
            pytest.param([*[FAILED] * 3, EMPTY], ModelExclusion.EXPIRED, id="one empty stays so"),
            pytest.param([*[FAILED] * 3, EMPTY, EMPTY], ModelExclusion.EMPTY, id="two do not"),
            pytest.param([*[FAILED] * 3, QWEN], None, id="a list brings it back"),
            pytest.param(
                [LLAMA, EMPTY, FAILED, EMPTY, FAILED], ModelExclusion.MISSING, id="mixed"
            ),
        ],
    )
    def test_of_a_model_from_a_node(self, events, excluded):
        assert after(*events).exclusion("qwen") is excluded

    @pytest.mark.parametrize(
        ("model", "excluded"),
        [("llama", None), ("qwen", ModelExclusion.MISSING)],
        ids=["its own", "another"],
    )
    def test_an_expired_account_goes_on_with_what_it_listed(self, model, excluded):
        expired = after(*TO[State.EXPIRED], is_account=True)

        assert expired.state is State.EXPIRED
        assert expired.exclusion(model, is_account=True) is excluded

    @pytest.mark.parametrize(
        "events", [[FAILED] * 9, [EMPTY, *[FAILED] * 9]], ids=["never", "one empty list"]
    )
    def test_an_account_that_never_listed_stays_untried(self, events):
        assert after(*events, is_account=True).state is State.UNTRIED

    @pytest.mark.parametrize("model", ["Llama", "llama ", "llama:latest", "lama", ""])
    def test_a_name_is_matched_exactly(self, model):
        assert after(LLAMA).exclusion(model) is ModelExclusion.MISSING


class TestEmptyLists:
    @pytest.mark.parametrize("state", list(State))
    def test_the_first_one_changes_nothing_but_fails_error_and_age(self, state):
        before = after(*TO[state])
        first = advance(before, Listed((), NOW + 9), fail_threshold=3)

        assert (first.state, first.names) == (before.state, before.names)
        assert first.max_lens == before.max_lens
        assert (first.fails, first.last_error, first.listed_at) == (0, "", NOW + 9)

    @pytest.mark.parametrize("state", list(State))
    def test_the_second_in_a_row_is_believed_and_drops_the_names(self, state):
        second = after(*TO[state], EMPTY, EMPTY)

        assert (second.state, second.names, second.max_lens) == (State.KNOWN_EMPTY, (), ())

    @pytest.mark.parametrize("between", [FAILED, LLAMA], ids=["a failure", "a list"])
    def test_they_count_only_in_a_row(self, between):
        assert after(LLAMA, EMPTY, between, EMPTY).names == ("llama",)


class TestFailures:
    def test_keep_the_names_the_age_and_the_lengths(self):
        before, degraded = after(LLAMA), after(LLAMA, FAILED)

        assert degraded.names == before.names
        assert degraded.listed_at == before.listed_at
        assert degraded.max_lens == before.max_lens == (("llama", 4096),)

    def test_a_list_clears_them(self):
        found = after(LLAMA, FAILED, FAILED, QWEN)

        assert found == ModelDiscovery(State.KNOWN, ("qwen", "phi"), listed_at=NOW)

    def test_one_is_enough_where_the_threshold_says_so(self):
        assert after(LLAMA, FAILED, threshold=1).state is State.EXPIRED


@pytest.mark.parametrize(
    ("events", "provenance"),
    [
        pytest.param([], None, id="untried"),
        pytest.param([QWEN], None, id="not in the list"),
        pytest.param([LLAMA], Provenance.OBSERVED, id="known"),
        pytest.param([LLAMA, FAILED], Provenance.PRESERVED, id="degraded"),
        pytest.param(TO[State.EXPIRED], Provenance.PRESERVED, id="expired"),
        pytest.param([LLAMA, EMPTY, EMPTY], None, id="dropped"),
    ],
)
def test_why_a_model_is_believed_to_be_there(events, provenance):
    assert after(*events).provenance("llama") is provenance


@pytest.mark.parametrize("state", list(State))
def test_the_last_answer_stands_for_known_and_known_empty_only(state):
    believed = after(*TO[state]).is_believed

    assert believed == (state in {State.KNOWN, State.KNOWN_EMPTY})
