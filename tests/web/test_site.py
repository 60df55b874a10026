"""The pipeline of every request: routing, ids, errors and records."""

import asyncio
import logging

import pytest
from aiohttp import web

from llmgw.core.errors import Unavailable
from llmgw.web.access import Ending
from llmgw.web.pages import public_pages
from llmgw.web.site import Site
from llmgw.web.table import Page
from tests.fakes.gateway import FakeGateway
from tests.fakes.patience import until
from tests.fakes.raw_client import chat, request
from tests.web.conftest import Door, opened

CANARY = "CANARY-secret-77"


@pytest.mark.parametrize(
    "target",
    [
        "/v1/chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions?beta=true",
        "http://elsewhere/v1/chat/completions?beta=true",
    ],
)
async def test_a_slash_a_query_and_a_whole_url_are_accepted(door, target):
    reply = await door.ask(request("POST", target, body=b'{"model":"m1"}'))

    query = "?beta=true" if "?" in target else ""
    assert reply.status == 200
    assert door.gateway.calls[0].target == f"/v1/chat/completions{query}"


async def test_an_unknown_url_is_a_404_in_json(door):
    reply = await door.ask(request("GET", f"/v1/chat/completion?{CANARY}"))

    assert (reply.status, reply.code) == (404, "not_found")
    assert reply.headers["content-type"] == "application/json"
    assert "/v1/chat/completions" in reply.json["error"]["message"]
    assert CANARY not in reply.body.decode()


async def test_an_unknown_url_below_messages_is_refused_in_its_shape(door):
    reply = await door.ask(request("GET", "/v1/messages/batches"))

    assert (reply.status, reply.json["type"]) == (404, "error")
    assert reply.json["error"]["type"] == "not_found_error"
    assert reply.headers["request-id"] == reply.headers["x-request-id"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_another_method_is_a_405_with_those_allowed(door, method):
    reply = await door.ask(request(method, "/v1/chat/completions", body=b""))

    assert (reply.status, reply.code) == (405, "method_not_allowed")
    assert reply.headers["allow"] == "OPTIONS, POST"


async def test_head_of_a_post_route_is_a_405_without_a_body(door):
    client = await door.client()

    reply = await client.ask(request("HEAD", "/v1/messages"), head_only=True)

    assert reply.status == 405
    assert (await client.ask(chat())).status == 200


async def test_a_405_on_messages_is_in_its_shape(door):
    reply = await door.ask(request("GET", "/v1/messages"))

    assert (reply.status, reply.json["type"]) == (405, "error")


@pytest.mark.parametrize("target", ["CONNECT elsewhere:443", "TRACE /v1/models", "GET *"])
async def test_odd_requests_are_refused_like_any_other(door, target):
    reply = await door.ask(f"{target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    assert reply.status in (400, 404, 405)
    assert reply.json["error"]["code"]


@pytest.mark.parametrize("version", ["2.0", "0.9"])
async def test_a_version_that_is_not_spoken_is_refused(door, version):
    reply = await door.ask(request("GET", "/v1/models", version=version))

    assert (reply.status, reply.code) == (505, "http_version_not_supported")


async def test_every_answer_has_an_id_of_ours(door):
    client = await door.client()
    asked = [("X-Request-Id", "cl-55"), ("Request-Id", "cl-56")]

    replies = [
        await client.ask(chat(headers=asked)),
        await client.ask(request("GET", "/nowhere", headers=asked)),
        await client.ask(request("POST", "/v1/messages", body=b"{}", headers=asked)),
    ]

    ids = [reply.headers["x-request-id"] for reply in replies]
    assert ids == [f"req_{number}" for number in range(3)]
    assert replies[2].headers["request-id"] == "req_2"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_an_error_of_ours_is_said_in_the_dialect_with_its_headers(door, path):
    async def refuse(call, principal, downstream):
        raise Unavailable("no healthy node available", headers=(("retry-after", "3"),))

    door.gateway.serving = refuse
    reply = await door.ask(request("POST", path, body=b'{"model":"m1"}'))

    assert (reply.status, reply.headers["retry-after"]) == (503, "3")
    assert reply.json["error"]["message"] == "no healthy node available"
    assert ("code" in reply.json["error"]) == (path != "/v1/messages")


async def test_a_fault_of_ours_is_a_500_that_tells_nothing(door, caplog):
    async def fail(call, principal, downstream):
        raise KeyError(CANARY)

    door.gateway.serving = fail
    with caplog.at_level(logging.DEBUG):
        reply = await door.ask(chat())

    assert (reply.status, reply.code) == (500, "internal_error")
    assert CANARY not in reply.body.decode() + caplog.text
    [record] = [one for one in caplog.records if one.message == "request failed"]
    assert record.error == "KeyError"
    assert record.frames[-1].endswith(" fail")
    assert record.exc_info is None


async def test_a_fault_after_the_head_can_only_cut(door):
    async def fail(call, principal, downstream):
        downstream.commit(200, ())
        downstream.write(b"half")
        raise KeyError(CANARY)

    door.gateway.serving = fail
    client = await door.client()
    client.send(chat())
    await client.reader.readuntil(b"\r\n\r\n")

    assert await client.rest() == b"4\r\nhalf\r\n"
    assert door.records[0].ending is Ending.CUT


async def test_a_fault_after_the_whole_answer_leaves_it_as_it_is(door):
    async def fail(call, principal, downstream):
        downstream.respond(200, (), b"all")
        raise KeyError(CANARY)

    door.gateway.serving = fail

    assert (await door.ask(chat())).body == b"all"


async def test_a_handler_that_forgets_to_answer_is_a_500(door):
    async def forget(call, principal, downstream):
        return None

    door.gateway.serving = forget

    assert (await door.ask(chat())).code == "internal_error"


async def test_a_request_is_recorded_with_its_route_and_without_its_query(door):
    await door.ask(chat(b'{"model":"m1"}'))
    await door.ask(request("GET", f"/{CANARY}?key={CANARY}"))
    await until(lambda: len(door.records) == 2)

    known, unknown = door.records
    assert (known.method, known.route, known.status) == ("POST", "/v1/chat/completions", 200)
    assert (known.key, known.model, known.bytes) == ("open", "m1", 14)
    assert 0 < known.seconds < 1
    assert known.ending is Ending.WHOLE
    assert (unknown.route, unknown.status, unknown.model) == ("unknown", 404, None)
    assert CANARY not in repr(door.records)


async def test_a_recorder_that_fails_takes_no_answer_away(door, caplog):
    door.site._on_complete = lambda record: 1 / 0

    reply = await door.ask(chat())

    assert reply.status == 200
    assert "access record lost" in caplog.text


async def test_a_page_may_let_aiohttp_send_its_response(gateway):
    async def page(incoming):
        return web.Response(status=202, text="by aiohttp")

    pages = public_pages(gateway, [Page("/extra", {"GET": page})])
    async with opened(Door(gateway, pages)) as door:
        client = await door.client()

        reply = await client.ask(request("GET", "/extra"))

        assert (reply.status, reply.body) == (202, b"by aiohttp")
        assert reply.headers["x-request-id"] == "req_0"
        assert (await client.ask(chat())).status == 200
        assert door.records[0].status == 202


async def test_what_aiohttp_sends_ends_a_connection_that_drains(gateway):
    gate = asyncio.Event()

    async def page(incoming):
        await gate.wait()
        return web.Response(text="by aiohttp")

    async with opened(Door(gateway, [Page("/extra", {"GET": page})])) as door:
        client = await door.client()
        client.send(request("GET", "/extra"))
        await asyncio.sleep(0.02)
        drain = asyncio.create_task(door.server.drain(5))
        await asyncio.sleep(0)
        gate.set()

        assert (await client.reply()).closes
        await drain


async def test_what_a_handler_let_through_ends_the_connection(gateway, caplog):
    site = Site(gateway, ())

    with pytest.raises(ConnectionResetError):
        site.refuse(None, None, KeyError(CANARY))

    assert "request handler failed" in caplog.text
    assert CANARY not in caplog.text


async def test_many_requests_at_once_are_kept_apart(door):
    async def echo(call, principal, downstream):
        await asyncio.sleep(0.001)
        downstream.respond(200, (), call.model.encode())

    door.gateway.serving = echo
    asked = [b"m%d" % number for number in range(50)]

    replies = await asyncio.gather(*(door.ask(chat(b'{"model":"%s"}' % one)) for one in asked))

    assert [reply.body for reply in replies] == asked


def test_the_fake_has_what_the_real_one_promises():
    assert FakeGateway().new_request_id() == "req_0"
