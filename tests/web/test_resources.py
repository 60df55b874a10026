"""The routes of ids: which call they become, and what is answered without asking anybody."""

import pytest

from llmgw.core.pins import PinKind, Resource, resources_of
from llmgw.core.routes import ID_ROUTES
from llmgw.core.types import RouteClass
from tests.fakes.gateway import keyring
from tests.fakes.raw_client import request

UPLOAD = b'--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nhello\r\n--x--\r\n'
FORM = [("content-type", "multipart/form-data; boundary=x")]


@pytest.mark.parametrize("route", ID_ROUTES, ids=lambda one: f"{one.method} {one.path}")
async def test_every_route_of_an_id_becomes_a_call_for_it(door, route):
    path = route.path.replace("{id}", "the-id")

    reply = await door.ask(request(route.method, path))

    [call] = door.gateway.calls
    assert reply.status == 200
    assert (call.route, call.target, call.model) == (route, path, "")
    assert [one.id for one in resources_of(call)] == ["the-id"] * ("{id}" in route.path)
    assert door.records[0].route == route.path


async def test_an_upload_passes_as_it_came(door):
    await door.ask(request("POST", "/v1/files", body=UPLOAD, headers=FORM))

    [call] = door.gateway.calls
    assert call.body == UPLOAD
    assert ("content-type", "multipart/form-data; boundary=x") in call.headers
    assert call.lane is RouteClass.FILE


async def test_an_id_is_taken_as_it_was_meant_and_sent_as_it_must_be(door):
    await door.ask(request("GET", "/v1/files/a%2Fb%20c/content?x=1"))

    [call] = door.gateway.calls
    assert resources_of(call) == (Resource(PinKind.FILE, "a/b c"),)
    assert call.target == "/v1/files/a%2Fb%20c/content?x=1"


async def test_files_cant_be_listed(door):
    reply = await door.ask(request("GET", "/v1/files"))

    assert (reply.status, reply.json["error"]["code"]) == (501, "not_implemented")
    assert door.gateway.calls == []


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/files/f", "DELETE, GET, HEAD, OPTIONS"),
        ("GET", "/v1/responses/r/cancel", "OPTIONS, POST"),
    ],
)
async def test_another_method_is_told_which_there_are(door, method, path, allow):
    reply = await door.ask(request(method, path))

    assert (reply.status, reply.headers["allow"]) == (405, allow)


@pytest.mark.parametrize("path", ["/v1/files", "/v1/files/f", "/v1/responses/r"])
async def test_nobody_without_a_key_learns_anything_of_an_id(door, path):
    door.gateway.keyring = keyring("good")

    reply = await door.ask(request("GET", path))

    assert reply.status == 401
    assert door.gateway.calls == []


@pytest.mark.parametrize("path", ["/v1/responses/r/other", "/v1/files/f/content/more"])
async def test_below_an_id_there_is_nothing_else(door, path):
    assert (await door.ask(request("GET", path))).status == 404
