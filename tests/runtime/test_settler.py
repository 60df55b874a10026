"""What a request leaves behind: rows off its path, and nothing where nobody was asked."""

import asyncio
import time

import pytest

from llmgw.core.circuit import CircuitKey
from llmgw.core.classify import Fault, classify
from llmgw.core.config import CircuitsConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failover import Failover
from llmgw.core.plan import RoutePlan
from llmgw.core.settle import scope_of
from llmgw.core.types import CLUSTER, AssignmentId, KeyId, RouteClass
from llmgw.core.usage import UNKNOWN
from llmgw.runtime import settler as module
from llmgw.runtime.board import Board
from llmgw.runtime.registry import Registry
from llmgw.runtime.router import Router
from llmgw.runtime.settler import Settler
from llmgw.runtime.shared import SharedBoard
from tests.builders import call, config, node
from tests.fakes.calls import until
from tests.fakes.clock import Clock
from tests.fakes.stores import FakeDatabase

A, B = (Candidate(AssignmentId(f"cluster/{name}"), node(name)) for name in "ab")
SCOPE = scope_of(call(), pool=CLUSTER, key=KeyId("k"))
RESET = classify(
    Fault(FaultKind.LOST), provenance=None, lane=RouteClass.HTTP, is_account=False, visible=False
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def database():
    return FakeDatabase()


@pytest.fixture
def board(clock):
    return Board(CircuitsConfig(), wall=clock)


@pytest.fixture
def settler(database, board, clock):
    router = Router(Registry(config(node("a"), node("b"))), board, wall=clock)
    shared = SharedBoard(board, database.circuits, database.drains)
    return Settler(shared, router, database.requests, wall=clock)


@pytest.fixture
def failed(clock):
    """A request whose first attempt has failed and will be followed by another."""
    failover = Failover(RoutePlan((A, B)))
    failover.dispatch(now=clock())
    failover.record(RESET, now=clock(), visible=False)
    return failover


def circuit_of(candidate: Candidate) -> CircuitKey:
    return CircuitKey(CLUSTER, candidate.assignment, "m", RouteClass.HTTP)


def settle(settler: Settler, failover: Failover, status: int = 200) -> None:
    settler.settle(SCOPE, failover, status=status, started=0.0, usage=UNKNOWN, model_label="m")


async def test_a_handoff_waits_for_the_database_but_not_long(settler, failed, database, board):
    database.door.hangs = True
    began = time.monotonic()

    await settler.handoff(SCOPE, failed.log[0])

    assert module.HANDOFF_WITHIN <= time.monotonic() - began < 1.0
    assert board.circuit(circuit_of(A)).failures == 1
    assert circuit_of(A) not in database.circuits.rows
    database.door.release()
    assert database.circuits.rows[circuit_of(A)].failures == 1


async def test_a_client_that_leaves_in_the_handoff_stops_no_write_and_is_accounted_for(
    settler, failed, database, clock
):
    database.door.hangs = True
    handing = asyncio.ensure_future(settler.handoff(SCOPE, failed.log[0]))
    await asyncio.sleep(0)
    handing.cancel()
    await asyncio.wait((handing,))
    failed.cancel(now=clock())
    settle(settler, failed, status=499)
    database.door.release()

    assert database.circuits.rows[circuit_of(A)].failures == 1
    ((done, _),) = database.requests.recorded
    assert [one.outcome.value for one in done.attempts] == ["failed"]
    assert (done.request.outcome.value, done.request.retry_count) == ("cancelled", 0)


async def test_a_success_writes_rows_and_no_circuit(settler, database, clock):
    failover = Failover(RoutePlan((A,)))
    failover.dispatch(now=clock())
    failover.succeed(now=clock())

    settle(settler, failover)

    assert database.door.calls == 0
    assert len(database.requests.recorded) == 1


async def test_a_request_that_runs_long_has_a_row_before_it_ends(settler, database, clock):
    settler.begin(SCOPE, started=clock())
    clock.advance(4.9)
    settler.open_rows()
    assert database.requests.opened == []

    clock.advance(0.2)
    settler.open_rows()
    settler.open_rows()

    assert database.requests.opened == [(SCOPE, 1000.0)]


@pytest.mark.parametrize("ends", ["settled", "abandoned"])
async def test_a_request_that_has_ended_gets_no_open_row(settler, database, clock, failed, ends):
    settler.begin(SCOPE, started=clock())
    if ends == "settled":
        settle(settler, failed)
    else:
        settler.abandon(SCOPE)

    clock.advance(60.0)
    settler.open_rows()

    assert database.requests.opened == []


async def test_the_loop_looks_for_long_requests(settler, database, clock, monkeypatch):
    monkeypatch.setattr(module, "LOOK_EVERY", 0.001)
    settler.begin(SCOPE, started=clock() - 10)
    watching = asyncio.ensure_future(settler.watch())

    await until(lambda: database.requests.opened != [])

    watching.cancel()
    await asyncio.wait((watching,))
