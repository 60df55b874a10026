"""The retry budget: a fifth of the last ten seconds, at least ten."""

import pytest

from llmgw.core.budget import AT_LEAST, RetryBudget


def spent(budget, now=0.0, *, retried=False):
    count = 0
    while budget.allows(now, retried=retried):
        budget.spend(now)
        count += 1
    return count


@pytest.mark.parametrize(
    ("requests", "handoffs"), [(0, AT_LEAST), (50, AT_LEAST), (100, 20), (1004, 200)]
)
def test_handoffs_are_a_share_of_the_requests_and_at_least_ten(requests, handoffs):
    budget = RetryBudget()
    for _ in range(requests):
        budget.request(0.0)

    assert spent(budget) == handoffs


def test_a_request_that_the_client_repeats_may_use_half():
    assert spent(RetryBudget(), retried=True) == AT_LEAST // 2


def test_only_the_last_ten_seconds_count():
    budget = RetryBudget()
    for _ in range(1000):
        budget.request(0.5)

    assert spent(budget, 9.9) == 200
    assert not budget.allows(9.9)
    assert spent(budget, 10.0) == 0
    assert spent(budget, 19.9) == AT_LEAST


def test_a_long_silence_forgets_all():
    budget = RetryBudget()
    assert spent(budget, 3.0) == AT_LEAST

    assert spent(budget, 1e9) == AT_LEAST


def test_a_clock_that_seems_to_go_back_frees_nothing():
    budget = RetryBudget()
    assert spent(budget, 100.0) == AT_LEAST

    assert not budget.allows(95.0)
    assert not budget.allows(100.0)
