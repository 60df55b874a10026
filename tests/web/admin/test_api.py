"""Documents of `/admin/api`, and how many queries they cost."""

from dataclasses import replace

import pytest

from llmgw.core.admin_seen import BUCKETS
from llmgw.core.config import Config
from llmgw.core.failover import Outcome
from llmgw.store.store import open_store
from llmgw.store.usage import UsageLine
from llmgw.web.admin import desk as desk_module
from tests.builders import node
from tests.fakes.admin import gateway_of, two_pools
from tests.fakes.settlements import settled
from tests.fakes.statements import counted_statements
from tests.web.admin.conftest import AdminDoor
from tests.web.conftest import opened

LINE = UsageLine("m1", 4, 3, 1, 0, 30, 10, 0)


async def test_upstreams(door):
    door.book.usage["day"] = [LINE]
    await door.log_in()

    document = (await door.get("/admin/api/upstreams")).json
    [pool] = document["pools"]
    [one] = pool["assignments"]

    assert (pool["name"], pool["strategy"]) == ("day", "round_robin")
    assert (one["id"], one["standing"], one["models"]) == ("day/sun", "healthy", 2)
    assert one["circuits"] == {"open": 0, "half_open": 0, "failing": 0}
    assert [signal["lane"] for signal in one["signals"]] == ["http", "sse", "websocket"]
    assert len(one["samples"]) == BUCKETS
    assert document["usage"]["source"] == "database"
    assert document["usage"]["rows"][0] == {
        "model": "m1",
        "requests": 4,
        "failed": 1,
        "tokens_in": 30,
        "tokens_out": 10,
        "request_share": 1.0,
        "token_share": 1.0,
    }


async def test_routing(door):
    await door.log_in()

    document = (await door.get("/admin/api/routing?routing=day/sun")).json

    routing = document["routing"]
    assert routing["assignment"] == "day/sun"
    assert routing["models"][0] == {
        "id": "m1",
        "provenance": "observed",
        "max_model_len": None,
        "http": "unverified",
        "sse": "unverified",
        "websocket": "unverified",
    }
    assert {one["name"]: one["answer"] for one in routing["capabilities"]} == dict.fromkeys(
        ("responses", "messages", "streaming", "tools", "websocket"), "unknown"
    )
    assert document["usage"]["rows"] == []


async def test_requests_with_their_attempts_from_memory_while_the_database_is_away(door):
    door.book.is_away = True
    done = settled("r1", pool="day", outcomes=(Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED))
    door.gateway.observed.settled(done)
    await door.log_in()

    document = (await door.get("/admin/api/requests")).json
    page = (await door.get("/admin/requests")).body

    [one] = document["requests"]
    assert document["source"] == "memory"
    assert (one["request_id"], one["outcome"], one["retry_count"]) == ("r1", "succeeded", 1)
    assert [(at["assignment"], at["reason"]) for at in one["attempts"]] == [
        ("day/a", "upstream_model_unavailable"),
        ("day/b", None),
    ]
    assert b"Of this gateway alone" in page
    assert b"upstream_model_unavailable" in page


async def test_a_database_that_hangs_holds_no_page_up(door, monkeypatch):
    monkeypatch.setattr(desk_module, "QUERY_WITHIN", 0.01)
    door.book.hangs = True
    await door.log_in()

    reply = await door.get("/admin/upstreams")

    assert reply.status == 200
    assert b"the database is not read" in reply.body


async def test_without_a_database_memory_is_shown(gateway, supervisor):
    async with opened(AdminDoor(gateway, None, supervisor)) as door:
        await door.log_in()

        assert (await door.get("/admin/api/requests")).json == {"source": "memory", "requests": []}


async def test_many_who_look_at_once_cost_one_query(door):
    await door.log_in()
    for _ in range(5):
        await door.get("/admin/requests")

    assert len(door.book.asked) == 1


def fleet(assignments: int, models: int) -> tuple[Config, list[str]]:
    day = [node(f"n{at}", port=8000 + at) for at in range(assignments)]
    return two_pools(day=day), [f"model-{at}" for at in range(models)]


@pytest.mark.parametrize(
    ("path", "statements"),
    [
        ("upstreams", 1),
        ("upstreams?routing=day/n0", 1),
        ("requests", 2),
        ("circuits", 0),
        ("api/upstreams", 1),
        ("api/routing?routing=day/n0", 1),
        ("api/requests", 2),
        ("api/circuits", 0),
    ],
)
@pytest.mark.parametrize(("assignments", "models"), [(1, 1), (200, 300)], ids=["one", "many"])
async def test_the_number_of_queries_depends_on_the_page_alone(
    tmp_path, supervisor, path, statements, assignments, models
):
    config, names = fleet(assignments, models)
    store = await open_store("sqlite://", state_dir=tmp_path, instance="i")
    supervisor.loop("writer", store.writer.run)
    for at in range(min(50, assignments)):
        done = settled(f"r{at}", pool="day", model=names[at % models])
        store.requests.record(done)
    await store.writer.flush()
    gateway = gateway_of(config, *names)

    async with opened(AdminDoor(gateway, store.usage, supervisor)) as door:
        await door.log_in()
        with counted_statements(store.database) as seen:
            reply = await door.get(f"/admin/{path}")

    await store.close()
    assert reply.status == 200
    assert len(seen) == statements


async def test_looking_asks_no_upstream_anything(door):
    """The pages are handed readings only: a gateway that could be asked for more is never."""
    await door.log_in()
    before = replace(door.gateway)

    for path in (
        "upstreams?routing=day/sun",
        "requests",
        "circuits",
        "api/routing?routing=day/sun",
    ):
        assert (await door.get(f"/admin/{path}")).status == 200

    assert door.gateway.calls == before.calls == []
    assert door.gateway.board.circuits == {}
