"""A connection whose bytes are offered before they are parsed."""

import pytest

from llmgw.web.riding import Ride
from tests.fakes.patience import until
from tests.fakes.raw_client import chat


class Waits(Ride):
    """Ends when the test says so."""

    def __init__(self, connection, data):
        self.connection, self.data = connection, data
        self.has_left = False
        self.kept = True

    def answer(self, *, keep=True):
        self.connection.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        self.connection.ride_over(keep=keep)

    def leave(self):
        self.has_left = True

    async def go_on(self):
        self.connection.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntask")
        self.connection.ride_ended()
        return self.kept


@pytest.fixture
async def riding(door):
    """The rides that were taken; what begins with POST /v1/chat is."""
    rides = []

    def take(connection, data):
        if not data.startswith(b"POST /v1/chat"):
            return None
        rides.append(Waits(connection, data))
        return rides[-1]

    door.site.take = door.server._made.take = take
    return rides


OTHER = chat().replace(b"/v1/chat/completions", b"/v1/completions")


async def asked(door, riding, data=None):
    client = await door.client()
    await until(lambda: any(one.is_idle for one in door.server._made.live))
    client.send(data or chat())
    await until(lambda: riding)
    return client


async def test_what_is_taken_is_not_parsed(door, riding):
    client = await asked(door, riding)

    riding[0].answer()

    assert (await client.reply()).body == b"hi"
    assert riding[0].data == chat()
    assert door.gateway.calls == []
    assert (await client.ask(OTHER)).status == 200
    assert len(door.gateway.calls) == 1


async def test_what_comes_behind_it_waits_for_its_end(door, riding):
    client = await asked(door, riding)
    client.send(OTHER)
    await until(lambda: riding[0].connection._ahead == OTHER)
    assert door.gateway.calls == []

    riding[0].answer()

    assert [(await client.reply()).body for _ in range(2)] == [b"hi", b'{"id":"hello"}']


async def test_it_goes_on_in_the_task_when_it_is_handed_over(door, riding):
    client = await asked(door, riding)

    riding[0].connection.hand_over(riding[0])

    assert (await client.reply()).body == b"task"
    assert (await client.ask(OTHER)).status == 200


@pytest.mark.parametrize("handed", [False, True])
async def test_it_may_end_its_connection(door, riding, handed):
    client = await asked(door, riding)

    if handed:
        riding[0].kept = False
        riding[0].connection.hand_over(riding[0])
    else:
        riding[0].answer(keep=False)

    assert (await client.reply()).status == 200
    assert await client.rest() == b""


@pytest.mark.parametrize("how", ["reset", "close", "shut_sending"])
async def test_a_client_that_leaves_is_noticed(door, riding, how):
    client = await asked(door, riding)
    assert not riding[0].connection.is_idle

    getattr(client, how)()

    await until(lambda: riding[0].has_left)
    await until(lambda: not door.server.connections)


async def test_nothing_is_taken_from_the_middle_of_what_is_parsed(door, riding):
    client = await door.client()
    client.send(OTHER[:40])
    await until(lambda: any(one._fed for one in door.server._made.live))
    client.send(OTHER[40:] + chat())

    assert [(await client.reply()).body for _ in range(2)] == [b'{"id":"hello"}'] * 2
    assert riding == []
