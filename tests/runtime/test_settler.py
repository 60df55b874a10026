"""What a request leaves behind: circuits, demotions, rows and counters, each exactly once."""

import asyncio

import pytest

from llmgw.core.circuit import CircuitKey, CircuitState
from llmgw.core.classify import Effect, Verdict, Whose
from llmgw.core.config import CircuitsConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.failover import Failover
from llmgw.core.plan import RoutePlan
from llmgw.core.settle import Scope
from llmgw.core.types import CLUSTER, AssignmentId, KeyId, RouteClass
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.observe.metrics import ATTEMPTS, HANDOFFS, TOKENS
from llmgw.runtime.board import Board
from llmgw.runtime.registry import Registry
from llmgw.runtime.router import Router
from llmgw.runtime.settler import OPEN_AFTER, Settler
from llmgw.runtime.shared import SharedBoard
from tests.builders import config, node
from tests.fakes.clock import Clock
from tests.fakes.patience import WITHIN, until
from tests.fakes.stores import AWAY, FakeDatabase

ERROR = Verdict(Whose.UPSTREAM, True, Effect.FAILURE, "upstream_error", demote_for=60.0)
NEUTRAL = Verdict(Whose.CLIENT, False, Effect.NONE, "client_error")
A, B = (
    Candidate(AssignmentId(f"cluster/{name}"), node(name, 8000 + at))
    for at, name in enumerate("ab")
)


def scope(request_id: str = "req_1") -> Scope:
    return Scope(request_id, CLUSTER, KeyId("k"), "m", RouteClass.HTTP, "/v1/x", False)


def key_of(candidate: Candidate) -> CircuitKey:
    return CircuitKey(CLUSTER, candidate.assignment, "m", RouteClass.HTTP)


def value(metric, *labels: str) -> float:
    return metric.labels(*labels)._value.get()


class Desk:
    """A settler over a board that opens at the first failure, and a database."""

    def __init__(self) -> None:
        self.wall = Clock(5000.0)
        registry = Registry(config(A.upstream, B.upstream))
        self.board = Board(CircuitsConfig(failure_threshold=1), wall=self.wall)
        self.router = Router(registry, self.board, wall=self.wall)
        self.database = FakeDatabase()
        stores = self.database.stores
        shared = SharedBoard(self.board, stores.circuits, stores.drains)
        self.settler = Settler(shared, self.router, stores.requests, wall=self.wall)

    def settle(self, failover: Failover, *, usage: Usage = UNKNOWN, status: int = 200):
        return self.settler.settle(
            scope(), failover, status=status, started=4999.0, usage=usage, model_label="m"
        )

    def state(self, candidate: Candidate) -> CircuitState:
        return self.board.circuit(key_of(candidate)).state

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return [
            tuple(one.outcome.value for one in done.attempts)
            for done, _ in self.database.requests.recorded
        ]


@pytest.fixture
def desk():
    return Desk()


def failed_over() -> Failover:
    """The first candidate failed and was handed on, the second served."""
    failover = Failover(RoutePlan((A, B)))
    failover.dispatch(now=1.0)
    failover.record(ERROR, now=2.0, visible=False)
    failover.dispatch(now=2.0)
    failover.succeed(now=3.0)
    return failover


async def test_a_failure_is_seen_by_others_before_the_next_candidate_is_asked(desk):
    failover = Failover(RoutePlan((A, B)))
    failover.dispatch(now=1.0)
    step = failover.record(ERROR, now=2.0, visible=False)
    before = value(HANDOFFS, "upstream_error")

    await desk.settler.handoff(scope(), step.attempt)

    assert desk.state(A) is CircuitState.OPEN
    assert desk.board.demoted(CLUSTER, KeyId("k"), "m") == {A.assignment}
    assert value(HANDOFFS, "upstream_error") - before == 1


async def test_what_the_handoff_applied_is_not_applied_again(desk):
    failover = failed_over()
    await desk.settler.handoff(scope(), failover.log[0])
    version = desk.board.circuit(key_of(A)).version

    desk.settle(failover)

    assert desk.board.circuit(key_of(A)).version == version
    assert desk.rows == [("retryable_failed", "succeeded")]


async def test_a_database_that_hangs_holds_a_handoff_up_for_a_moment_only(desk):
    desk.database.door.hangs = True
    failover = failed_over()

    async with asyncio.timeout(WITHIN):
        await desk.settler.handoff(scope(), failover.log[0])

    assert desk.state(A) is CircuitState.OPEN, "in the view at once"
    desk.database.door.release()
    await until(lambda: key_of(A) in desk.database.circuits.rows)


async def test_a_client_that_leaves_during_the_handoff_does_not_stop_the_write(desk):
    desk.database.door.hangs = True
    task = asyncio.create_task(desk.settler.handoff(scope(), failed_over().log[0]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    desk.database.door.release()

    await until(lambda: key_of(A) in desk.database.circuits.rows)


async def test_without_a_database_circuits_are_kept_here(desk):
    desk.database.door.error = AWAY

    await desk.settler.handoff(scope(), failed_over().log[0])

    assert desk.state(A) is CircuitState.OPEN


async def test_each_attempt_counts_by_what_came_of_it(desk):
    before = [value(ATTEMPTS, "m", status) for status in ("upstream_error", "200")]

    desk.settle(failed_over())

    after = [value(ATTEMPTS, "m", status) for status in ("upstream_error", "200")]
    assert [one - other for one, other in zip(after, before, strict=True)] == [1, 1]


@pytest.mark.parametrize(
    ("status", "verdict", "label"),
    [
        pytest.param(503, ERROR, "503", id="the upstream's status"),
        pytest.param(None, ERROR, "upstream_error", id="what failed before one came"),
        pytest.param(None, None, "cancelled", id="the client left"),
    ],
)
async def test_the_status_label_of_an_attempt(desk, status, verdict, label):
    failover = Failover(RoutePlan((A,)))
    failover.dispatch(now=1.0)
    if verdict is None:
        failover.cancel(now=2.0)
    else:
        failover.record(verdict, now=2.0, visible=False, status=status)
    before = value(ATTEMPTS, "m", label)

    desk.settle(failover, status=499)

    assert value(ATTEMPTS, "m", label) - before == 1


async def test_tokens_count_where_the_upstream_tells_them(desk):
    before = [value(TOKENS, "m", way) for way in ("in", "out")]

    desk.settle(failed_over(), usage=Usage(3, 2))
    desk.settle(failed_over())

    after = [value(TOKENS, "m", way) for way in ("in", "out")]
    assert [one - other for one, other in zip(after, before, strict=True)] == [3, 2]


async def test_a_success_ends_what_a_failure_began(desk):
    await desk.settler.handoff(scope(), failed_over().log[0])
    desk.wall.advance(60.0)
    assert await desk.settler.lease(scope(), A, "me")
    failover = Failover(RoutePlan((A,)))
    failover.dispatch(now=1.0, owner="me")
    failover.succeed(now=2.0)

    desk.settle(failover)

    assert desk.state(A) is CircuitState.CLOSED
    assert desk.board.demoted(CLUSTER, KeyId("k"), "m") == frozenset()
    await until(lambda: desk.database.circuits.rows == {})


async def test_a_slot_is_taken_once_and_given_back_by_a_neutral_end(desk):
    await desk.settler.handoff(scope(), failed_over().log[0])
    desk.wall.advance(60.0)
    taken = [await desk.settler.lease(scope(), A, owner) for owner in ("me", "you")]
    failover = Failover(RoutePlan((A,)))
    failover.dispatch(now=1.0, owner="me")
    failover.record(NEUTRAL, now=2.0, visible=False, status=400)

    desk.settle(failover, status=400)

    assert taken == [True, False]
    assert await desk.settler.lease(scope(), A, "you")


class TestOpenRows:
    async def test_a_request_that_runs_long_gets_a_row_before_it_ends(self, desk):
        desk.settler.begin(scope("old"), started=desk.wall())
        desk.wall.advance(OPEN_AFTER)
        desk.settler.begin(scope("young"), started=desk.wall())

        desk.settler.open_rows()
        desk.settler.open_rows()

        opened = [one.request_id for one, _ in desk.database.requests.opened]
        assert opened == ["old"]

    async def test_one_that_ended_or_was_never_sent_gets_none(self, desk):
        desk.settler.begin(scope(), started=desk.wall())
        desk.settle(failed_over())
        desk.settler.begin(scope("refused"), started=desk.wall())
        desk.settler.abandon(scope("refused"))
        desk.wall.advance(OPEN_AFTER)

        desk.settler.open_rows()

        assert desk.database.requests.opened == []
