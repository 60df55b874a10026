"""Every answer is in the database as it was, over a restart; at full size: `accounting.py`."""

from tests.e2e.accounting import account

REQUESTS = 400


async def test_nothing_is_lost_over_a_restart(tmp_path):
    outcome = await account(tmp_path, REQUESTS)

    assert len(outcome.answered) == REQUESTS
    assert outcome.lost == set()
    assert len(outcome.rows) == REQUESTS
    assert (outcome.without_attempts, outcome.wrong_ends) == (0, 0)
    assert outcome.handed_on == outcome.retries > 0
