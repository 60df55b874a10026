"""What a connection does with a client that takes no answers."""

from llmgw.web import watches
from tests.fakes.gateway import JSON
from tests.fakes.patience import at_rest, until
from tests.fakes.raw_client import chat
from tests.web.conftest import Door, opened

LARGE = b"x" * 1_000_000
MANY = 16


async def large(call, principal, downstream):
    downstream.respond(200, JSON, LARGE)


async def test_pipelined_requests_wait_until_the_answers_before_them_are_taken(door):
    door.gateway.serving = large
    client = await door.client(limit=1024)
    client.send(chat() * MANY)
    assert 0 < await at_rest(lambda: len(door.records)) < MANY

    replies = [await client.reply() for _ in range(MANY)]

    assert {reply.body for reply in replies} == {LARGE}
    assert len(door.records) == MANY


async def test_a_client_that_pipelines_and_takes_nothing_is_cut(gateway, monkeypatch):
    monkeypatch.setattr(watches, "FLUSH_WITHIN", 0.05)
    gateway.serving = large
    async with opened(Door(gateway)) as door:
        client = await door.client(limit=1024)
        client.send(chat() * MANY)

        await until(lambda: door.records)
        await until(lambda: door.server.connections == 0)

        assert len(door.records) < MANY
