"""Two gateways on one database: what one sees, both know; what can't be written is not lost."""

import asyncio

import pytest

from llmgw.core.circuit import CircuitKey, CircuitState, DemotionKey, Failed, Neutral, Succeeded
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass, UpstreamName
from llmgw.runtime import shared
from llmgw.runtime.board import Board
from llmgw.runtime.shared import SharedBoard
from tests.fakes.clock import Clock
from tests.fakes.patience import until
from tests.fakes.stores import AWAY, FakeDatabase

POOL, A = PoolName("p"), AssignmentId("p/a")
CIRCUIT = CircuitKey(POOL, A, "m", RouteClass.HTTP)
DEMOTION = DemotionKey(POOL, KeyId("k"), "m", A)
FAILED = Changes(((CIRCUIT, Failed("upstream_error")),))
DEMOTED = Changes(demotions=(Demote(DEMOTION, 60.0),))
CONFIG = CircuitsConfig(failure_threshold=2, open_for=60.0)


def change(event) -> Changes:
    return Changes(((CIRCUIT, event),))


class Side:
    """One gateway's board on the database."""

    def __init__(self, database: FakeDatabase, clock: Clock) -> None:
        self.board = Board(CONFIG, wall=clock)
        self.shared = SharedBoard(self.board, database.circuits, database.drains)

    @property
    def failures(self) -> int:
        return self.board.circuit(CIRCUIT).failures

    @property
    def state(self) -> CircuitState:
        return self.board.circuit(CIRCUIT).state


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def database():
    return FakeDatabase()


@pytest.fixture
def one(database, clock):
    return Side(database, clock)


@pytest.fixture
def other(database, clock):
    return Side(database, clock)


@pytest.fixture
async def opened(one, other, clock):
    """The circuit is open, both know it, and its time has come."""
    await one.shared.apply(FAILED)
    await one.shared.apply(FAILED)
    await one.shared.look()
    await other.shared.look()
    clock.advance(60.0)


async def test_a_failure_is_in_the_view_at_once_and_then_in_the_other_gateways(
    database, one, other
):
    database.door.hangs = True
    written = one.shared.apply(FAILED)
    assert one.failures == 1
    assert not written.done()

    database.door.release()
    await other.shared.look()

    assert other.failures == 1


async def test_failures_of_two_gateways_count_together(one, other):
    await one.shared.apply(FAILED)
    await other.shared.apply(FAILED)

    assert other.state is CircuitState.OPEN
    await one.shared.look()
    assert one.state is CircuitState.OPEN


async def test_a_success_where_nothing_is_wrong_writes_nothing(database, one):
    assert one.shared.apply(change(Succeeded())) is None
    assert one.shared.apply(Changes(demotions=(Demote(DEMOTION, None),))) is None
    assert one.shared.apply(change(Neutral())) is None

    assert database.door.calls == 0


async def test_a_success_ends_what_another_gateway_saw(database, one, other):
    await one.shared.apply(FAILED)
    await other.shared.look()

    await other.shared.apply(change(Succeeded()))
    await one.shared.look()

    assert one.failures == 0
    assert database.circuits.rows == {}


async def test_a_look_does_not_undo_what_is_on_its_way(database, one, other):
    await other.shared.apply(FAILED)
    await other.shared.apply(change(Succeeded()))
    database.door.hangs = True
    one.shared.apply(FAILED)
    looking = asyncio.ensure_future(one.shared.look())
    await asyncio.sleep(0)
    database.door.waiting.reverse()  # the look is answered first

    database.door.release()
    await looking

    assert one.failures == 1


async def test_of_two_gateways_one_probes(opened, one, other):
    leases = await asyncio.gather(
        one.shared.lease(CIRCUIT, "one"), other.shared.lease(CIRCUIT, "other")
    )

    assert leases == [True, False]


async def test_of_many_requests_of_one_gateway_one_asks_the_database(opened, database, one):
    before = database.door.calls

    leases = await asyncio.gather(*(one.shared.lease(CIRCUIT, f"r{at}") for at in range(100)))

    assert leases.count(True) == 1
    assert database.door.calls == before + 1


async def test_a_lost_slot_looks_taken_until_it_is_free(opened, database, one, other):
    await one.shared.lease(CIRCUIT, "one")
    assert not await other.shared.lease(CIRCUIT, "other")
    before = database.door.calls
    assert not await other.shared.lease(CIRCUIT, "again")
    assert database.door.calls == before

    await one.shared.apply(change(Neutral("one")))
    await other.shared.look()

    assert await other.shared.lease(CIRCUIT, "other")


async def test_a_foreign_completion_settles_no_slot(opened, one, other):
    await one.shared.lease(CIRCUIT, "one")
    await other.shared.look()

    await other.shared.apply(change(Succeeded("somebody else")))

    assert one.board.circuit(CIRCUIT).holds("one")
    assert other.state is CircuitState.HALF_OPEN


async def test_a_slot_that_is_not_settled_is_taken_over(opened, one, other, clock):
    await one.shared.lease(CIRCUIT, "one")
    await other.shared.look()
    assert not await other.shared.lease(CIRCUIT, "other")

    clock.advance(60.0)

    assert await other.shared.lease(CIRCUIT, "other")


async def test_a_client_that_leaves_while_it_waits_for_a_slot_gives_it_back(opened, database, one):
    database.door.hangs = True
    asking = asyncio.ensure_future(one.shared.lease(CIRCUIT, "one"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    database.door.release()

    assert not database.circuits.rows[CIRCUIT].leases


async def test_a_slot_that_comes_late_goes_back(opened, database, one, monkeypatch):
    monkeypatch.setattr(shared, "LEASE_WITHIN", 0.0)
    database.door.hangs = True

    assert not await one.shared.lease(CIRCUIT, "one")
    database.door.release()
    await one.shared.look()

    assert not database.circuits.rows[CIRCUIT].leases


async def test_while_the_database_is_away_each_gateway_goes_on_alone(opened, database, one, other):
    database.door.error = AWAY

    assert await one.shared.lease(CIRCUIT, "one")
    assert await other.shared.lease(CIRCUIT, "other")
    one.shared.apply(change(Succeeded("one")))
    assert (one.state, other.state) == (CircuitState.CLOSED, CircuitState.HALF_OPEN)


async def test_what_changed_meanwhile_is_merged_when_it_is_back(database, one, other):
    database.door.error = AWAY
    one.shared.apply(FAILED)
    one.shared.apply(FAILED)
    one.shared.apply(DEMOTED)
    await one.shared.look()
    assert one.state is CircuitState.OPEN

    database.door.error = None
    await one.shared.look()
    await other.shared.look()

    assert other.state is CircuitState.OPEN
    assert other.board.demoted(POOL, KeyId("k"), "m") == {A}


async def test_a_row_that_another_gateway_changed_meanwhile_wins(database, one, other):
    await other.shared.apply(FAILED)
    await one.shared.look()
    database.door.error = AWAY
    await asyncio.wait((one.shared.apply(FAILED),))
    database.door.error = None
    await other.shared.apply(change(Succeeded()))

    await one.shared.look()

    assert one.state is CircuitState.CLOSED
    assert database.circuits.rows == {}


async def test_demotions_are_shared_and_end_together(one, other):
    await one.shared.apply(DEMOTED)
    await other.shared.look()
    assert other.board.demoted(POOL, KeyId("k"), "m") == {A}

    await other.shared.apply(Changes(demotions=(Demote(DEMOTION, None),)))
    await one.shared.look()

    assert one.board.demoted(POOL, KeyId("k"), "m") == frozenset()


async def test_a_drained_node_is_drained_everywhere(database, one):
    version = one.board.version
    database.drains.rows[UpstreamName("a")] = 10_000.0

    await one.shared.look()

    assert one.board.draining() == {"a"}
    assert one.board.version > version


async def test_rows_that_a_reload_dropped_come_back_with_the_next_look(one):
    await one.shared.apply(FAILED)
    await one.shared.look()
    one.board.retain([])
    one.shared.forget()

    await one.shared.look()

    assert one.failures == 1


async def test_the_loop_looks_and_lets_go_of_what_is_over(one, other, clock, monkeypatch):
    monkeypatch.setattr(shared, "LOOK_EVERY", 0.001)
    one.shared.apply(DEMOTED)
    clock.advance(60.0)
    following = asyncio.ensure_future(one.shared.follow())

    await other.shared.apply(FAILED)
    await until(lambda: one.failures == 1)
    await until(lambda: not one.board.demotions())

    following.cancel()
    await asyncio.wait((following,))
