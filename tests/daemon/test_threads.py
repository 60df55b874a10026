"""Threads that compute beside the event loop give way to it soon."""

import sys

import pytest

from llmgw.daemon.threads import SWITCH_EVERY, tune_threads


@pytest.fixture(autouse=True)
def as_before():
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)


def test_a_thread_gives_way_sooner_than_python_would_have_it():
    before = sys.getswitchinterval()

    tune_threads()

    assert sys.getswitchinterval() == pytest.approx(SWITCH_EVERY)
    assert before > SWITCH_EVERY
