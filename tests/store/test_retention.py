"""What is too old goes."""

import pytest

from llmgw.core.circuit import DemotionKey
from llmgw.core.config import CircuitsConfig
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import AssignmentId, PoolName, UpstreamName
from llmgw.store import retention
from llmgw.store.pins import PinKind
from tests.fakes.settlements import settled
from tests.fakes.statements import counted_statements

KEEP = 100.0
BLUE, A = PoolName("blue"), AssignmentId("blue/a")


async def left(store) -> list[str]:
    return sorted(one.request_id for one in await store.usage.recent())


async def test_requests_and_attempts_go_when_they_are_too_old(store):
    store.requests.record(settled("old", started=1000.0))
    store.requests.record(settled("young", started=1000.1))
    await store.writer.flush()

    gone = await store.retention.sweep(now=1100.05, keep=KEEP)

    assert gone == 2
    assert await left(store) == ["young"]


async def test_what_has_an_end_of_its_own_goes_with_it(store):
    await store.pins.put(BLUE, PinKind.FILE, "f", A, now=0.0)
    await store.drains.begin(UpstreamName("a"), now=0.0, for_seconds=10.0)
    await store.drains.begin(UpstreamName("b"), now=0.0, for_seconds=None)
    demote = Demote(DemotionKey(BLUE, None, "llama", A), 60.0)
    await store.circuits.apply(Changes((), (demote,)), now=0.0, config=CircuitsConfig())

    assert await store.retention.sweep(now=1e6, keep=KEEP) == 3
    assert list(await store.drains.current(now=1e6)) == ["b"]


@pytest.mark.parametrize("rows", [9, 10, 11])
async def test_much_goes_in_bounded_batches(store, monkeypatch, rows):
    monkeypatch.setattr(retention, "BATCH", 5)
    for number in range(rows):
        store.requests.record(settled(f"r{number}"))
    await store.writer.flush()

    with counted_statements(store.database) as statements:
        gone = await store.retention.sweep(now=1e6, keep=KEEP)

    deletions = sum("DELETE FROM requests" in one for one in statements)
    assert (gone, deletions) == (2 * rows, rows // 5 + 1)
    assert await left(store) == []
