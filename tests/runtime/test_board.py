"""The board: the one view of circuits and demotions, and who may change it."""

import pytest

from llmgw.core.circuit import CircuitKey, DemotionKey, Failed, Succeeded
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.runtime.board import Board

POOL = PoolName("p")
A, B = AssignmentId("p/a"), AssignmentId("p/b")
KEY = KeyId("k")
CIRCUIT = CircuitKey(POOL, A, "m", RouteClass.SSE)
FAILURE = Changes(circuits=((CIRCUIT, Failed("upstream_error")),))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def board(clock):
    return Board(CircuitsConfig(failure_threshold=2, open_for=60.0), wall=clock)


def demote(assignment: AssignmentId, seconds: float | None) -> Changes:
    return Changes(demotions=(Demote(DemotionKey(POOL, KEY, "m", assignment), seconds),))


def test_a_failure_is_in_the_view_at_once_and_makes_older_decisions_stale(board):
    view, version = board.view(), board.version

    board.apply(FAILURE)

    assert view[CIRCUIT].failures == 1
    assert board.version > version


def test_a_circuit_that_is_well_again_leaves_no_trace(board):
    board.apply(FAILURE)

    board.apply(Changes(circuits=((CIRCUIT, Succeeded()),)))

    assert board.view() == {}


def test_a_success_where_nothing_was_wrong_changes_nothing(board):
    board.apply(Changes(circuits=((CIRCUIT, Succeeded()),)))

    assert board.version == 0


def test_of_many_that_want_to_probe_one_gets_the_slot(board, clock):
    board.apply(FAILURE)
    board.apply(FAILURE)
    clock.now += 60.0

    assert [board.lease(CIRCUIT, owner) for owner in ("r1", "r2", "r3")] == [True, False, False]


def test_a_demotion_lasts_as_long_as_it_says_and_concerns_one_key_and_model(board, clock):
    board.apply(demote(A, 30.0))
    board.apply(demote(B, 60.0))

    assert board.demoted(POOL, KEY, "m") == {A, B}
    assert board.demoted(POOL, None, "m") == frozenset()
    assert board.demoted(POOL, KEY, "other") == frozenset()
    clock.now += 30.0
    assert board.demoted(POOL, KEY, "m") == {B}


def test_a_success_ends_a_demotion(board):
    board.apply(demote(A, 30.0))

    board.apply(demote(A, None))
    board.apply(demote(A, None))

    assert board.demoted(POOL, KEY, "m") == frozenset()


def test_demotions_that_are_over_are_dropped(board, clock):
    board.apply(demote(A, 30.0))
    board.apply(demote(B, 60.0))

    clock.now += 30.0
    board.expire()
    assert board.demoted(POOL, KEY, "m") == {B}
    clock.now += 30.0
    board.expire()

    assert board._demoted == {}


def test_assignments_that_are_gone_take_their_circuits_along(board):
    board.apply(FAILURE)
    other = CircuitKey(POOL, B, "m", RouteClass.SSE)
    board.apply(Changes(circuits=((other, Failed("x")),)))
    version = board.version

    board.retain([B])

    assert set(board.view()) == {other}
    assert board.version > version
