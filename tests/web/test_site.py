"""The pipeline of every request, on a real server."""

from tests.fakes.raw_client import chat


async def test_a_call_gets_its_answer(door):
    reply = await door.ask(chat())

    assert (reply.status, reply.json) == (200, {"id": "hello"})
