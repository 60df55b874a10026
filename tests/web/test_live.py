"""The door for websockets: who is let in, and what is said to whoever is not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from llmgw.core.config import WebsocketConfig
from llmgw.web.live import LiveDoor
from llmgw.web.table import Page
from tests.fakes.live import TOKEN, create, whole
from tests.fakes.patience import until
from tests.fakes.raw_client import request
from tests.fakes.sockets import FakeSocket, refused, said
from tests.fakes.turn_scene import TurnScene
from tests.fakes.wire_frames import RawSocket, close, text, upgrade
from tests.web.conftest import Door

SECRET = f"openai-insecure-api-key.{TOKEN}"
REALTIME = "/v1/realtime?model=m1"


class Entry(Door):
    """The pages of the websockets, on scripted upstreams."""

    def __init__(self, *sockets, **sections) -> None:
        self.scene = TurnScene(*sockets, **sections)
        self.live = LiveDoor(self.scene.gateway, self.scene.sockets, lambda: False)
        (responses,) = self.live.upgrades.items()
        pages = (Page(responses[0], {"GET": responses[1]}), *self.live.pages)
        super().__init__(self.scene.gateway, pages)

    async def socket(self) -> RawSocket:
        client = await RawSocket.connect(self.address)
        self.clients.append(client)
        return client


@pytest.fixture
async def entry_of() -> AsyncIterator:
    made: list[Entry] = []

    async def make(*sockets, **sections) -> Entry:
        made.append(Entry(*sockets, **sections))
        await made[-1].open()
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def test_a_turn_is_served_and_its_socket_has_a_line_of_its_own(entry_of):
    entry = await entry_of(FakeSocket(*map(said, whole())))
    client = await entry.socket()
    await client.shake_hands(token=TOKEN)
    client.send(text(create()))

    assert [await client.event() for _ in range(3)] == whole()
    client.send(close(1000))
    assert (await client.frame()).code == 1000
    await until(lambda: entry.records)

    (record,) = entry.records
    assert (record.route, record.status, record.key) == ("/v1/responses", 101, "k0")


@pytest.mark.parametrize("path", ["/v1/responses", REALTIME])
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"token": "wrong"}, 401, id="a wrong key"),
        pytest.param({}, 401, id="no key"),
        pytest.param({"Sec_WebSocket_Protocol": "openai-insecure-api-key.x"}, 401, id="as such"),
        pytest.param({"token": TOKEN, "Sec_WebSocket_Version": "8"}, 426, id="an old version"),
        pytest.param({"token": TOKEN, "Sec_WebSocket_Key": "x"}, 400, id="no key of a handshake"),
        pytest.param({"token": TOKEN, "Via": "1.1 llmgw-gw1"}, 508, id="our own request"),
    ],
)
async def test_whoever_is_not_let_in_is_told_by_a_status(entry_of, path, changes, status):
    entry = await entry_of()

    reply = await entry.ask(upgrade(path, **changes))

    assert reply.status == status
    assert entry.scene.sockets.asked == []
    assert TOKEN.encode() not in reply.head + reply.body


async def test_a_get_without_an_upgrade_is_told_what_is_taken(entry_of):
    entry = await entry_of()
    key = [("Authorization", f"Bearer {TOKEN}")]

    responses = await entry.ask(request("GET", "/v1/responses", headers=key))
    realtime = await entry.ask(request("GET", REALTIME, headers=key))

    assert (responses.status, responses.headers["allow"]) == (405, "OPTIONS, POST")
    assert (realtime.status, realtime.headers["upgrade"]) == (426, "websocket")


async def test_without_bridges_and_websockets_an_upgrade_is_answered_with_426(entry_of):
    entry = await entry_of(takes=False, websocket=WebsocketConfig(bridge=False))

    reply = await entry.ask(upgrade(token=TOKEN))

    assert reply.status == 426


async def test_without_bridges_whoever_may_take_websockets_is_worth_a_try(entry_of):
    entry = await entry_of(websocket=WebsocketConfig(bridge=False))
    client = await entry.socket()

    assert (await client.shake_hands(token=TOKEN)).status == 101


@pytest.mark.parametrize("offered", [SECRET, f"realtime, {SECRET}"])
async def test_a_key_that_came_as_a_subprotocol_is_never_echoed_or_passed_on(entry_of, offered):
    upstream = FakeSocket()
    upstream.protocol = "realtime" if "realtime" in offered else None
    entry = await entry_of(upstream)
    client = await entry.socket()

    reply = await client.shake_hands(path=REALTIME, Sec_WebSocket_Protocol=offered)

    assert reply.headers.get("sec-websocket-protocol") == upstream.protocol
    assert TOKEN not in json.dumps(entry.scene.sockets.asked, default=str)
    client.reset()


async def test_a_realtime_session_that_nobody_accepts_is_answered_by_a_status(entry_of):
    entry = await entry_of(refused(503), refused(429))

    reply = await entry.ask(upgrade(REALTIME, token=TOKEN))

    assert reply.status == 429
    await until(lambda: entry.records)
    (record,) = entry.records
    assert (record.attempts, record.model, record.assignment) == (2, "m1", "p/b")


async def test_a_realtime_session_has_one_line_that_says_who_served(entry_of):
    entry = await entry_of(FakeSocket())
    client = await entry.socket()
    await client.shake_hands(path=REALTIME, token=TOKEN)
    client.send(close(1000))

    assert (await client.frame()).code == 1000
    await until(lambda: entry.records)

    (record,) = entry.records
    assert (record.route, record.status, record.attempts) == ("/v1/realtime", 101, 1)
    assert record.assignment == "p/a"
