"""Live updates: what changed, to whom it may concern, and to nobody else."""

import json
from dataclasses import replace

import pytest

from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import AdminConfig
from llmgw.core.types import AssignmentId, RouteClass
from llmgw.web.admin import live as module
from tests.builders import node
from tests.fakes.admin import gateway_of, two_pools
from tests.fakes.raw_client import request
from tests.fakes.settlements import settled


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module.Live.__init__, "__kwdefaults__", {"tick": 0.01})


class Stream:
    """One event stream, read as it comes."""

    def __init__(self, client) -> None:
        self._chunks = client._chunks()
        self._text = ""

    @classmethod
    async def of(cls, door, path: str, *, name: str = "ada") -> "Stream":
        await door.log_in(name)
        client = await door.client()
        client.send(request("GET", path, headers=door._with_cookies(())))
        door.head = await client.reader.readuntil(b"\r\n\r\n")
        return cls(client)

    async def event(self) -> tuple[str, str]:
        while "\n\n" not in self._text:
            self._text += (await anext(self._chunks)).decode()
        event, _, self._text = self._text.partition("\n\n")
        name, data = event.split("\n")
        return name.removeprefix("event: "), data.removeprefix("data: ")

    async def parts(self) -> list[dict[str, str]]:
        name, data = await self.event()
        assert name == "parts"
        return json.loads(data)

    async def ended(self) -> bool:
        return [one async for one in self._chunks] == []


def open_circuit(gateway, pool: str, name: str, model: str) -> None:
    key = CircuitKey(pool, AssignmentId(f"{pool}/{name}"), model, RouteClass.SSE)
    gateway.board.circuits[key] = Circuit(CircuitState.OPEN, open_until=2e9)


async def test_a_stream_begins_with_the_whole_page_as_it_is_now(door):
    stream = await Stream.of(door, "/admin/live/upstreams")

    parts = await stream.parts()
    page = (await door.get("/admin/upstreams")).body.decode()

    assert b"text/event-stream" in door.head
    assert b"Content-Security-Policy" in door.head
    assert len(parts) == 3
    for part in parts:
        assert f'id="{part["id"]}" data-version="{part["version"]}"' in page


async def test_only_what_changed_is_told(door):
    stream = await Stream.of(door, "/admin/live/upstreams")
    first = await stream.parts()

    open_circuit(door.gateway, "day", "sun", "m1")
    changed = await stream.parts()

    assert {one["id"] for one in changed} < {one["id"] for one in first}
    assert "1 open" in "".join(one["html"] for one in changed)


async def test_another_pools_changes_are_not_even_noticed(door):
    stream = await Stream.of(door, "/admin/live/upstreams")
    await stream.parts()

    open_circuit(door.gateway, "night", "moon", "moon-circuit")
    door.gateway.observed.settled(settled(pool="night", model="moon-model"))
    open_circuit(door.gateway, "day", "sun", "m1")
    changed = await stream.parts()

    assert "moon" not in json.dumps(changed)
    assert "1 open" in json.dumps(changed)


async def test_an_open_panel_is_live_too(door):
    stream = await Stream.of(door, "/admin/live/upstreams?routing=day%2Fsun")

    assert "Advertised models" in json.dumps(await stream.parts())

    open_circuit(door.gateway, "day", "sun", "m2")
    assert "unavailable" in json.dumps(await stream.parts())


async def test_another_pools_panel_is_not_in_it(door):
    stream = await Stream.of(door, "/admin/live/upstreams?routing=night%2Fmoon")

    assert "Advertised models" not in json.dumps(await stream.parts())


@pytest.mark.parametrize("page", ["requests", "circuits"])
async def test_every_page_is_live(door, page):
    stream = await Stream.of(door, f"/admin/live/{page}")

    [part] = await stream.parts()

    assert part["html"]


async def test_a_page_that_has_other_parts_now_is_to_be_read_again(door):
    stream = await Stream.of(door, "/admin/live/upstreams")
    await stream.parts()

    more = gateway_of(two_pools(day=[node("sun"), node("star", port=8001)]), "m1")
    door.gateway.config, door.gateway.registry = more.config, more.registry

    assert await stream.event() == ("reload", "")
    assert await stream.ended()


async def test_it_ends_with_the_session(door):
    stream = await Stream.of(door, "/admin/live/circuits")
    await stream.parts()

    door.gateway.config = replace(
        door.gateway.config, admin=AdminConfig(door.gateway.config.admin.users[1:])
    )

    assert await stream.event() == ("end", "")
    assert await stream.ended()


async def test_it_does_not_hold_up_a_gateway_that_stops(door):
    stream = await Stream.of(door, "/admin/live/circuits")
    await stream.parts()

    door.gateway.draining = True

    assert await stream.ended()


async def test_streams_are_bounded_and_their_places_are_given_back(door, monkeypatch):
    monkeypatch.setattr(module, "MOST_LIVE", 1)
    stream = await Stream.of(door, "/admin/live/circuits")
    await stream.parts()

    assert (await door.get("/admin/live/circuits")).status == 503

    door.clients[-2].close()
    for _ in range(200):
        client = await door.client()
        client.send(request("GET", "/admin/live/circuits", headers=door._with_cookies(())))
        if b" 200 " in await client.reader.readline():
            return
        client.close()
    raise AssertionError("the place was not given back")


async def test_a_stream_has_no_head_of_its_own(door):
    await door.log_in()

    assert (await door.get("/admin/live/circuits", method="HEAD")).status == 405
    assert (await door.get("/admin/live/nothing")).status == 404
