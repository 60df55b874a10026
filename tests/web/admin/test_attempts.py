"""How often somebody may try."""

import pytest

from llmgw.web.admin import attempts as module
from llmgw.web.admin.attempts import OF_ADDRESS, OF_ALL, OF_NAME, WINDOW, Attempts
from tests.fakes.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock) -> Attempts:
    return Attempts(clock=clock)


def fail(attempts: Attempts, times: int, *, address: str = "1.1.1.1", name: str = "ada") -> None:
    for _ in range(times):
        assert attempts.begin(address, name) is None


def test_a_name_has_a_few_attempts_from_one_address(attempts, clock):
    fail(attempts, OF_NAME)

    assert attempts.begin("1.1.1.1", "ada") == WINDOW
    clock.advance(20)
    assert attempts.begin("1.1.1.1", "ada") == WINDOW - 20


def test_others_are_not_kept_out_by_it(attempts):
    fail(attempts, OF_NAME)

    assert attempts.begin("2.2.2.2", "ada") is None
    assert attempts.begin("1.1.1.1", "grace") is None


def test_after_the_wait_it_goes_on(attempts, clock):
    fail(attempts, OF_NAME)
    clock.advance(WINDOW)

    fail(attempts, OF_NAME)
    assert attempts.begin("1.1.1.1", "ada") is not None


def test_an_attempt_that_was_refused_does_not_count(attempts, clock):
    fail(attempts, OF_NAME)
    for _ in range(10):
        attempts.begin("1.1.1.1", "ada")
    clock.advance(WINDOW)

    assert attempts.begin("1.1.1.1", "ada") is None


def test_many_names_are_no_way_around(attempts):
    for at in range(OF_ADDRESS):
        fail(attempts, 1, name=f"n{at}")

    assert attempts.begin("1.1.1.1", "another") is not None


def test_many_addresses_are_no_way_around(attempts):
    for at in range(OF_ALL):
        fail(attempts, 1, address=f"a{at}")

    assert attempts.begin("another", "ada") is not None


def test_a_success_forgets_what_was_typed_wrong(attempts):
    fail(attempts, OF_NAME - 1)
    fail(attempts, 1)
    attempts.succeeded("1.1.1.1", "ada")

    fail(attempts, OF_NAME)


def test_successes_do_not_use_up_the_limits(attempts):
    for _ in range(OF_ALL + 1):
        fail(attempts, 1)
        attempts.succeeded("1.1.1.1", "ada")


def test_memory_is_bounded(attempts, clock, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 10)
    for at in range(50):
        fail(attempts, 1, address=f"a{at}")

    assert len(attempts._failures) == 10
