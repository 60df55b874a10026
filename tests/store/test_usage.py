"""What is read of past requests."""

import pytest

from llmgw.core.failover import Outcome
from llmgw.core.types import PoolName
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.store.requests import Client
from llmgw.store.usage import GroupBy
from tests.fakes.settlements import KEY, settled
from tests.fakes.statements import counted_statements

HANDED_ON = (Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED)
SEARCH = Client("search", (("team", "find"), ("env", "prod")))
CHAT = Client("chat", (("env", "prod"),))
SINCE, UNTIL = 1000.0, 2000.0


@pytest.fixture
async def book(store):
    record = store.requests.record
    record(settled("r1", outcomes=HANDED_ON), SEARCH)
    record(settled("r2", model="qwen", started=1100.0), CHAT)
    record(settled("r3", outcomes=(Outcome.FAILED,), usage=UNKNOWN, started=1200.0), SEARCH)
    record(settled("r4", pool="red", started=1300.0, usage=Usage(2**70, 1, None)))
    record(settled("old", started=999.0), CHAT)
    record(settled("new", started=2000.0), CHAT)
    await store.writer.flush()
    return store.usage


async def groups(book, by: GroupBy, **scope) -> list[tuple[str | None, int]]:
    lines = await book.sums(by, since=SINCE, until=UNTIL, **scope)
    return [(line.group, line.requests) for line in lines]


@pytest.mark.parametrize(
    ("by", "found"),
    [
        (GroupBy.KEY, [("search", 2), ("00112233aabbccdd", 1), ("chat", 1)]),
        (GroupBy.MODEL, [("llama", 3), ("qwen", 1)]),
        (GroupBy.ASSIGNMENT, [("blue/a", 2), ("blue/b", 1), ("red/a", 1)]),
        (GroupBy.LABEL, [("env=prod", 3), ("team=find", 2), (None, 1)]),
    ],
)
async def test_requests_are_counted_by_what_is_asked(book, by, found):
    assert await groups(book, by) == found


async def test_the_sums_of_a_group(book):
    lines = await book.sums(GroupBy.KEY, since=SINCE, until=UNTIL)

    search = next(line for line in lines if line.group == "search")
    assert (search.succeeded, search.failed, search.handoffs) == (1, 1, 1)
    assert (search.tokens_in, search.tokens_out, search.tokens_cached) == (10, 20, 5)


@pytest.mark.parametrize(
    ("by", "found"),
    [
        (GroupBy.KEY, {("llama", "search", 2), ("llama", None, 1), ("qwen", "chat", 1)}),
        (
            GroupBy.LABEL,
            {
                ("llama", "env=prod", 2),
                ("llama", "team=find", 2),
                ("qwen", "env=prod", 1),
                ("llama", None, 1),
            },
        ),
    ],
)
async def test_the_sums_of_each_model_apart(book, by, found):
    lines = await book.sums_of_models(by, since=SINCE, until=UNTIL)

    groups = {(model, line.group, line.requests) for model, line in lines}
    assert {(m, None if g == KEY else g, n) for m, g, n in groups} == found
    whole = await book.sums(by, since=SINCE, until=UNTIL)
    assert sum(line.tokens_in for _, line in lines) == sum(line.tokens_in for line in whole)


async def test_a_pool_that_is_not_asked_for_does_not_count(book):
    assert await groups(book, GroupBy.MODEL, pools=[PoolName("red")]) == [("llama", 1)]
    assert await groups(book, GroupBy.MODEL, pools=[]) == []


async def test_the_last_five_minutes(book):
    lines = await book.lately_by_model(now=1400.0)

    assert [(line.group, line.requests) for line in lines] == [("llama", 2), ("qwen", 1)]


@pytest.mark.parametrize("by", list(GroupBy))
async def test_a_sum_is_one_query(store, book, by):
    with counted_statements(store.database) as statements:
        await groups(book, by, pools=[PoolName("blue"), PoolName("red")])

    assert len(statements) == 1


async def test_recent_requests_come_with_their_attempts_in_two_queries(store, book):
    with counted_statements(store.database) as statements:
        found = await book.recent(limit=5)

    assert len(statements) == 2
    assert [one.request_id for one in found] == ["new", "r4", "r3", "r2", "r1"]
    assert [(one.assignment, one.outcome, one.reason) for one in found[-1].attempts] == [
        ("blue/a", Outcome.RETRYABLE_FAILED, "upstream_model_unavailable"),
        ("blue/b", Outcome.SUCCEEDED, None),
    ]
    assert found[2].usage == UNKNOWN
    assert found[-1].key_name == "search"


async def test_recent_requests_of_a_pool(book):
    found = await book.recent(pools=[PoolName("red")])

    assert [one.request_id for one in found] == ["r4"]
