"""Shares of requests and tokens."""

from llmgw.core.admin_usage import UsageCount, with_shares


def test_shares_are_of_all_that_is_shown_and_the_busiest_comes_first():
    small, big = UsageCount("a", 1, 0, 10, 20), UsageCount("b", 3, 1, 20, 50)

    first, second = with_shares([small, big])

    assert (first.model, first.request_share, first.token_share) == ("b", 0.75, 0.7)
    assert (second.model, second.request_share, second.token_share) == ("a", 0.25, 0.3)
    assert (first.failed, first.tokens_in, first.tokens_out) == (1, 20, 50)


def test_equal_ones_are_in_the_order_of_their_names():
    found = with_shares([UsageCount("b", 1, 0, 0, 0), UsageCount("a", 1, 0, 0, 0)])

    assert [one.model for one in found] == ["a", "b"]
    assert {one.token_share for one in found} == {0.0}


def test_nothing_has_no_shares():
    assert with_shares([]) == ()
