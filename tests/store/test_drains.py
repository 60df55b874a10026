"""Nodes that are drained for every gateway."""

import pytest

from llmgw.core.types import UpstreamName
from llmgw.store.drains import FOREVER
from tests.store.conftest import running

NODE = UpstreamName("node-a")


@pytest.mark.parametrize(
    ("seconds", "now", "found"),
    [
        pytest.param(60.0, 159.0, {NODE: 160.0}, id="as long as it was said"),
        pytest.param(60.0, 160.0, {}, id="over"),
        pytest.param(None, 1e9, {NODE: FOREVER}, id="until it is ended"),
    ],
)
async def test_a_drain_lasts(store, seconds, now, found):
    await store.drains.begin(NODE, now=100.0, for_seconds=seconds)

    assert await store.drains.current(now=now) == found


async def test_every_gateway_sees_it(store, url, tmp_path):
    await store.drains.begin(NODE, now=100.0, for_seconds=None)

    async with running(url, tmp_path, "two") as two:
        assert NODE in await two.drains.current(now=101.0)


async def test_the_last_word_counts(store):
    await store.drains.begin(NODE, now=100.0, for_seconds=None)
    await store.drains.begin(NODE, now=100.0, for_seconds=5.0)

    assert await store.drains.current(now=100.0) == {NODE: 105.0}


async def test_an_ended_drain_is_gone(store):
    await store.drains.begin(NODE, now=100.0, for_seconds=None)

    assert await store.drains.end(NODE)
    assert not await store.drains.end(NODE)
    assert await store.drains.current(now=101.0) == {}
