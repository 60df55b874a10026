"""Circuits and demotions that gateways share."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llmgw.core.circuit import (
    CLOSED,
    Circuit,
    CircuitKey,
    CircuitState,
    DemotionKey,
    Failed,
    Lease,
    Neutral,
    Succeeded,
)
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.store.circuits import Circuits, View
from tests.fakes.statements import counted_statements
from tests.store.conftest import running

KEY = CircuitKey(PoolName("blue"), AssignmentId("blue/a"), "llama", RouteClass.SSE)
OTHER = KEY._replace(lane=RouteClass.HTTP)
DEMOTED = DemotionKey(PoolName("blue"), KeyId("k1"), "llama", AssignmentId("blue/a"))
CONFIG = CircuitsConfig()
ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "tests" / "fakes" / "transitions.py"


async def fail(circuits: Circuits, times: int = 1, *, now: float = 100.0, key=KEY) -> Circuit:
    for _ in range(times):
        written = await circuits.transition(key, Failed("bad"), now=now, config=CONFIG)
    return written.circuits[key]


async def view(circuits: Circuits, now: float = 100.0) -> View:
    return await circuits.load(now=now)


async def test_failures_in_a_row_open_the_circuit_in_the_database(store):
    await fail(store.circuits, 3)

    found = (await view(store.circuits)).circuits
    assert set(found) == {KEY}
    assert found[KEY].state is CircuitState.OPEN
    assert found[KEY].open_until == 160.0


async def test_a_success_deletes_the_row(store):
    await fail(store.circuits, 2)

    written = await store.circuits.transition(KEY, Succeeded(), now=101.0, config=CONFIG)

    assert written.circuits == {KEY: CLOSED}
    assert (await view(store.circuits)).circuits == {}


async def test_a_success_without_a_row_writes_nothing(store):
    with counted_statements(store.database) as statements:
        written = await store.circuits.transition(KEY, Succeeded(), now=1.0, config=CONFIG)

    assert written.cursor == 0
    assert [one.split()[0] for one in statements] == ["SELECT"]


async def test_a_row_keeps_all_that_a_circuit_is(store):
    circuit = Circuit(
        CircuitState.HALF_OPEN, 0, 4, 12.5, 1, (Lease("me:1", 11.0), Lease("you:2", 12.0)), "x"
    )

    written = await store.circuits.merge({KEY: circuit}, {})

    kept = (await view(store.circuits)).circuits[KEY]
    assert kept == replace(circuit, version=written.cursor)


async def test_a_recreated_row_never_has_the_version_of_its_predecessor(store):
    first = await fail(store.circuits)
    await store.circuits.transition(KEY, Succeeded(), now=1.0, config=CONFIG)

    second = await fail(store.circuits)

    assert second.version > first.version


async def test_all_events_of_one_settlement_count(store):
    changes = Changes(((KEY, Failed("x")), (OTHER, Failed("y")), (KEY, Failed("z"))))

    await store.circuits.apply(changes, now=1.0, config=CONFIG)

    found = (await view(store.circuits)).circuits
    assert (found[KEY].failures, found[KEY].reason, found[OTHER].failures) == (2, "z", 1)


async def test_one_of_a_hundred_gets_the_probe(store):
    await fail(store.circuits, 3)

    won = await asyncio.gather(
        *(store.circuits.lease(KEY, f"o{n}", now=170.0, config=CONFIG) for n in range(100))
    )

    assert sum(won) == 1


async def test_one_of_a_hundred_over_two_gateways_gets_the_probe(url, tmp_path):
    async with running(url, tmp_path) as one, running(url, tmp_path, "two") as two:
        await fail(one.circuits, 3)

        won = await asyncio.gather(
            *(
                store.circuits.lease(KEY, f"{name}:{n}", now=170.0, config=CONFIG)
                for n in range(50)
                for name, store in (("one", one), ("two", two))
            )
        )

    assert sum(won) == 1


@pytest.mark.parametrize(
    ("later", "taken"),
    [
        pytest.param(59.0, False, id="its prober may still be at work"),
        pytest.param(60.0, True, id="nothing heard for open_for: taken over"),
    ],
)
async def test_a_killed_probers_lease(store, later, taken):
    await fail(store.circuits, 3)
    assert await store.circuits.lease(KEY, "killed", now=170.0, config=CONFIG)

    assert await store.circuits.lease(KEY, "next", now=170.0 + later, config=CONFIG) is taken


async def test_a_late_completion_settles_no_foreign_slot(store):
    await fail(store.circuits, 3)
    await store.circuits.lease(KEY, "late", now=170.0, config=CONFIG)
    await store.circuits.lease(KEY, "next", now=240.0, config=CONFIG)

    written = await store.circuits.transition(KEY, Succeeded("late"), now=241.0, config=CONFIG)

    assert written.circuits[KEY].holds("next")


async def test_who_is_cancelled_while_it_leases_can_give_the_slot_back(store):
    await fail(store.circuits, 3)
    asked = asyncio.create_task(store.circuits.lease(KEY, "left", now=170.0, config=CONFIG))
    await asyncio.sleep(0)
    asked.cancel()

    await store.circuits.transition(KEY, Neutral("left"), now=170.0, config=CONFIG)

    assert await store.circuits.lease(KEY, "next", now=171.0, config=CONFIG)


async def test_a_demotion_lasts_until_its_end(store):
    changes = Changes(demotions=(Demote(DEMOTED, 60.0),))

    await store.circuits.apply(changes, now=100.0, config=CONFIG)

    assert (await view(store.circuits, 159.0)).demotions == {DEMOTED: 160.0}
    assert (await view(store.circuits, 160.0)).demotions == {}


async def test_a_success_ends_a_demotion(store):
    await store.circuits.apply(Changes((), (Demote(DEMOTED, 60.0),)), now=1.0, config=CONFIG)

    ended = Changes((), (Demote(DEMOTED, None),))
    written = await store.circuits.apply(ended, now=2.0, config=CONFIG)

    assert written.demotions == {DEMOTED: None}
    assert (await view(store.circuits, 2.0)).demotions == {}


async def test_the_end_of_no_demotion_writes_nothing(store):
    ended = Changes((), (Demote(DEMOTED._replace(key=None), None),))

    assert (await store.circuits.apply(ended, now=2.0, config=CONFIG)).cursor == 0


async def test_nothing_changed_is_one_query(store):
    await fail(store.circuits)
    cursor = (await view(store.circuits)).cursor

    with counted_statements(store.database) as statements:
        assert await store.circuits.changed_since(cursor, now=100.0) is None

    assert len(statements) == 1


@pytest.mark.parametrize("gone", [False, True], ids=["changed", "deleted"])
async def test_another_gateways_change_is_noticed(url, tmp_path, gone):
    async with running(url, tmp_path) as one, running(url, tmp_path, "two") as two:
        await fail(one.circuits)
        before = await view(one.circuits)
        event = Succeeded() if gone else Failed("x")

        await two.circuits.transition(KEY, event, now=101.0, config=CONFIG)
        after = await one.circuits.changed_since(before.cursor, now=101.0)

    assert after is not None
    assert [one.failures for one in after.circuits.values()] == ([] if gone else [2])


async def test_after_an_outage_an_untouched_row_takes_the_local_circuit(store):
    base = await fail(store.circuits, 1)
    local = Circuit(CircuitState.OPEN, openings=1, open_until=500.0, version=9)

    await store.circuits.merge({KEY: local, OTHER: local}, {KEY: base.version})

    found = (await view(store.circuits)).circuits
    assert {key: one.state for key, one in found.items()} == {
        KEY: CircuitState.OPEN,
        OTHER: CircuitState.OPEN,
    }


@pytest.mark.parametrize(
    ("event", "failures"),
    [
        pytest.param(Failed("x"), 2, id="changed"),
        pytest.param(Succeeded(), 0, id="deleted"),
    ],
)
async def test_after_an_outage_a_row_that_another_gateway_changed_wins(store, event, failures):
    base = await fail(store.circuits, 1)
    await store.circuits.transition(KEY, event, now=1.0, config=CONFIG)
    local = Circuit(CircuitState.OPEN, openings=1, open_until=500.0)

    written = await store.circuits.merge({KEY: local}, {KEY: base.version})

    assert written.circuits[KEY].failures == failures
    assert written.circuits[KEY].state is CircuitState.CLOSED


async def test_after_an_outage_a_closed_circuit_deletes_its_row(store):
    base = await fail(store.circuits, 1)

    written = await store.circuits.merge({KEY: CLOSED}, {KEY: base.version})

    assert written.circuits == {KEY: CLOSED}
    assert (await view(store.circuits)).circuits == {}


async def test_a_model_name_that_no_database_could_keep(store):
    key = KEY._replace(model="a\x00b\ud800" + "x" * 100_000)

    await store.circuits.transition(key, Failed("x"), now=1.0, config=CONFIG)
    written = await store.circuits.transition(key, Failed("x"), now=1.0, config=CONFIG)

    assert written.circuits[key].failures == 2


async def test_two_processes_lose_none_of_ten_thousand_transitions(url, tmp_path):
    each = 5000
    async with running(url, tmp_path) as store:
        workers = [
            await asyncio.create_subprocess_exec(
                sys.executable, str(WORKER), url, str(tmp_path), name, str(each), cwd=ROOT
            )
            for name in ("left", "right")
        ]
        ends = [await worker.wait() for worker in workers]
        found = (await view(store.circuits)).circuits

    assert ends == [0, 0]
    assert [one.failures for one in found.values()] == [2 * each]
