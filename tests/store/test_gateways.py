"""Gateways that die, and the requests that they leave."""

import pytest

from llmgw.core.failover import Outcome
from llmgw.store.gateways import SILENT_AFTER, Gateways
from tests.fakes.settlements import scope, settled
from tests.store.conftest import running


def gateway(store, name: str, place: str = "host:/var/lib/llmgw") -> Gateways:
    return Gateways(store.writer, instance=name, place=place, version="0.1.0")


async def outcomes(store) -> dict[str, Outcome | None]:
    await store.writer.flush()
    return {one.request_id: one.outcome for one in await store.usage.recent()}


async def test_a_request_that_runs_has_an_open_row_that_its_end_replaces(store):
    store.requests.record_open(scope("r1"), started=1000.0)
    assert await outcomes(store) == {"r1": None}

    store.requests.record(settled("r1", started=1000.0))

    assert await outcomes(store) == {"r1": Outcome.SUCCEEDED}
    (row,) = await store.usage.recent()
    assert (row.ended, len(row.attempts)) == (1001.0, 1)


async def test_an_open_row_does_not_replace_the_end(store):
    store.requests.record(settled("r1"))
    store.requests.record_open(scope("r1"), started=1000.0)
    assert await outcomes(store) == {"r1": Outcome.SUCCEEDED}

    store.requests.record_open(scope("r1"), started=1000.0)
    assert await outcomes(store) == {"r1": Outcome.SUCCEEDED}


@pytest.mark.parametrize(
    ("later", "closed"),
    [
        pytest.param(SILENT_AFTER, 0, id="it may still live"),
        pytest.param(SILENT_AFTER + 1, 1, id="silent for too long"),
    ],
)
async def test_what_a_silent_gateway_left_is_closed_by_another(store, later, closed):
    await gateway(store, "one", "elsewhere").start(now=1000.0, fresh=True)
    store.requests.record_open(scope("r1"), started=1000.0)
    await store.writer.flush()

    found = await gateway(store, "two").beat(now=1000.0 + later)

    assert found == closed
    assert await outcomes(store) == {"r1": Outcome.CANCELLED if closed else None}


async def test_a_gateway_that_beats_keeps_its_requests(store):
    one, two = gateway(store, "one"), gateway(store, "two", "elsewhere")
    await one.start(now=1000.0, fresh=True)
    store.requests.record_open(scope("r1"), started=1000.0)
    await store.writer.flush()

    for now in (1050.0, 1100.0, 1150.0):
        await one.beat(now=now)
        assert await two.beat(now=now) == 0


@pytest.mark.parametrize(
    ("fresh", "place", "closed"),
    [
        pytest.param(True, "host:/var/lib/llmgw", 1, id="a restart"),
        pytest.param(False, "host:/var/lib/llmgw", 0, id="an upgrade: the old one drains"),
        pytest.param(True, "other:/var/lib/llmgw", 0, id="another host"),
    ],
)
async def test_a_start_closes_what_its_predecessor_left(store, fresh, place, closed):
    await gateway(store, "one").start(now=1000.0, fresh=True)
    store.requests.record_open(scope("r1"), started=1000.0)
    await store.writer.flush()

    assert await gateway(store, "new", place).start(now=1001.0, fresh=fresh) == closed


async def test_a_gateway_that_lives_after_all_has_the_last_word(store):
    await gateway(store, "one").start(now=1000.0, fresh=True)
    store.requests.record_open(scope("r1"), started=1000.0)
    await store.writer.flush()
    await gateway(store, "two", "elsewhere").beat(now=2000.0)

    store.requests.record(settled("r1"))

    assert await outcomes(store) == {"r1": Outcome.SUCCEEDED}


async def test_the_first_end_counts(store):
    store.requests.record(settled("r1"))
    await store.writer.flush()

    store.requests.record(settled("r1", outcomes=(Outcome.FAILED,)))

    assert await outcomes(store) == {"r1": Outcome.SUCCEEDED}


async def test_who_stops_cleanly_is_forgotten(store, url, tmp_path):
    await gateway(store, "one").start(now=1000.0, fresh=True)
    await gateway(store, "one").stop()
    store.requests.record_open(scope("r1"), started=1000.0)
    await store.writer.flush()

    async with running(url, tmp_path, "two") as two:
        assert await gateway(two, "two").start(now=1001.0, fresh=True) == 0
