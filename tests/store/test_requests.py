"""What is kept of a request."""

import pytest
from sqlalchemy import Table, select

from llmgw.core.failover import Outcome
from llmgw.core.usage import Usage
from llmgw.store.identity import LONGEST_TEXT, digest, storable
from llmgw.store.requests import Client
from llmgw.store.schema import ATTEMPTS, REQUESTS
from tests.fakes.settlements import scope, settled

HANDED_ON = (Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED)


async def row(store, table: Table) -> list[dict[str, object]]:
    await store.writer.flush()
    async with store.database.read() as connection:
        found = await connection.execute(select(table).order_by(table.c.started_at))
        return [dict(one) for one in found.mappings()]


async def test_the_columns_of_a_request_and_its_attempts(store):
    client = Client("search", (("team", "find"), ("env", "prod")))

    store.requests.record(settled(outcomes=HANDED_ON), client)

    (request,) = await row(store, REQUESTS)
    assert request == {
        "id": "r1",
        "instance": "one",
        "pool": "blue",
        "key_id": "00112233aabbccdd",
        "key_name": "search",
        "labels": "env=prod,team=find",
        "model": "llama",
        "route_class": "sse",
        "route": "/v1/chat/completions",
        "stream": 1,
        "assignment": "blue/b",
        "outcome": "succeeded",
        "status": 200,
        "retry_count": 1,
        "started_at": 1000.0,
        "ended_at": 1002.0,
        "tokens_in": 10,
        "tokens_out": 20,
        "tokens_cached": 5,
        "closed_by": None,
    }
    assert [
        (one["request_id"], one["ordinal"], one["assignment"], one["outcome"], one["reason"])
        for one in await row(store, ATTEMPTS)
    ] == [
        ("r1", 1, "blue/a", "retryable_failed", "upstream_model_unavailable"),
        ("r1", 2, "blue/b", "succeeded", None),
    ]


async def test_an_open_row_knows_no_end(store):
    store.requests.record_open(scope(), started=1000.0)

    (request,) = await row(store, REQUESTS)
    unknown = ("assignment", "outcome", "status", "ended_at", "tokens_in", "closed_by")
    assert {request[name] for name in unknown} == {None}
    assert (request["started_at"], request["retry_count"]) == (1000.0, 0)


@pytest.mark.parametrize("model", ["a\x00b", "half \ud800", "x" * 100_000])
async def test_a_model_name_may_be_anything(store, model):
    store.requests.record(settled(model=model))
    store.requests.record_open(scope("r2", model=model), started=2000.0)

    assert [one["model"] for one in await row(store, REQUESTS)] == [storable(model)] * 2
    assert store.writer.status.refused == 0


async def test_a_count_that_no_request_can_have_is_unknown(store):
    store.requests.record(settled(usage=Usage(2**64, 2**40, None)))

    (request,) = await row(store, REQUESTS)
    assert (request["tokens_in"], request["tokens_out"]) == (None, 2**40)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("llama", "llama"),
        ("naïve/模型", "naïve/模型"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a?b"),
        ("x" * 600, "x" * LONGEST_TEXT),
    ],
)
def test_text_is_made_storable(given, kept):
    assert storable(given) == kept


def test_the_parts_of_a_digest_are_kept_apart():
    assert len({digest("a", "bc"), digest("ab", "c"), digest("abc"), digest("a", None)}) == 4
