"""The pipeline of an inference request, and the order of its refusals."""

import pytest

from llmgw.core.routes import ROUTES, ModelIn
from llmgw.web.inference import inference_pages
from tests.builders import form, form_part
from tests.fakes.gateway import FakeGateway, keyring
from tests.fakes.raw_client import chat, request

TOKEN = "sk-CANARY-good"


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if route.model_in is ModelIn.BODY]
)
async def test_every_json_route_takes_a_body_with_a_model(door, path):
    reply = await door.ask(request("POST", path, body=b'{"model":"m1"}'))

    [call] = door.gateway.calls
    assert reply.status == 200
    assert (call.route.path, call.model, call.request_id) == (path, "m1", "req_0")


@pytest.mark.parametrize(
    "header",
    [("Authorization", f"Bearer {TOKEN}"), ("x-api-key", TOKEN), ("api-key", TOKEN)],
    ids=lambda header: header[0],
)
async def test_a_key_is_known_by_any_of_three_headers(door, header):
    door.gateway.keyring = keyring(TOKEN)

    reply = await door.ask(chat(headers=[header]))

    assert reply.status == 200
    assert door.records[0].key == f"key-{TOKEN}"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/chat/completions", "invalid_api_key"), ("/v1/messages", "authentication_error")],
)
async def test_an_unknown_key_is_refused_without_a_word_of_it(door, caplog, path, kind):
    door.gateway.keyring = keyring(TOKEN)
    headers = [("Authorization", "Bearer sk-CANARY-bad")]

    reply = await door.ask(request("POST", path, body=b"not json", headers=headers))

    assert reply.status == 401
    assert kind in (reply.json["error"]["type"], reply.json["error"].get("code"))
    assert "CANARY" not in reply.body.decode() + caplog.text


async def test_a_key_counts_before_the_body_has_come(door):
    door.gateway.keyring = keyring(TOKEN)

    reply = await door.ask(chat()[:-5])

    assert (reply.status, reply.closes) == (401, True)


async def test_a_request_that_was_here_before_is_refused(door):
    reply = await door.ask(chat(headers=[("Via", "1.1 edge, 1.1 llmgw-fake01")]))

    assert (reply.status, reply.code) == (508, "loop_detected")


async def test_a_model_that_the_key_may_not_use_is_refused(door):
    door.gateway.keyring = keyring(TOKEN, models=("other",))

    reply = await door.ask(chat(headers=[("api-key", TOKEN)]))

    assert (reply.status, reply.code) == (403, "model_not_allowed")
    assert door.records[0].model == "m1"
    assert not door.gateway.calls


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", "invalid_request", id="empty"),
        pytest.param(b"not json", "invalid_request", id="not JSON"),
        pytest.param(b'{"model":"m1"', "invalid_request", id="cut short"),
        pytest.param(b"[1]", "invalid_request", id="no object"),
        pytest.param(b'{"model":"m1","x":"\xff"}', "invalid_request", id="invalid UTF-8"),
        pytest.param(
            b'{"model":"m1","x":' + b"[" * 1200 + b"]" * 1200 + b"}",
            "invalid_request",
            id="nested deeply",
        ),
        pytest.param(b'{"model":"m1","model":"m2"}', "invalid_request", id="two models"),
        pytest.param(b'{"Model":"m1"}', "invalid_request", id="in another case"),
        pytest.param(b'{"model":7}', "invalid_request", id="a number"),
        pytest.param(b'{"x":1}', "model_not_specified", id="no model"),
    ],
)
async def test_bad_input_is_a_400_and_the_connection_goes_on(door, body, code):
    client = await door.client()

    reply = await client.ask(chat(body))

    assert (reply.status, reply.code) == (400, code)
    assert reply.headers["content-type"] == "application/json"
    assert (await client.ask(chat())).status == 200


async def test_header_names_are_lower_case_and_values_as_they_came(door):
    await door.ask(chat(headers=[("X-Thing", "Caf\xe9"), ("x-thing", "b")]))

    headers = door.gateway.calls[0].headers
    assert [line for line in headers if line[0] == "x-thing"] == [
        ("x-thing", "Caf\xe9"),
        ("x-thing", "b"),
    ]


def test_an_upgrade_stands_beside_the_post_of_its_path():
    async def upgrade(incoming):
        return None

    pages = inference_pages(FakeGateway(), {"/v1/responses": upgrade})

    by_path = {page.path: page for page in pages}
    assert by_path["/v1/responses"].handler("GET") is upgrade
    assert set(by_path["/v1/chat/completions"].handlers) == {"POST"}


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if route.model_in is ModelIn.FORM]
)
async def test_every_form_route_takes_a_form_with_a_model(door, path):
    body = form(form_part("file", b"\0\r\n\xff", filename="f"), form_part("model", "m1"))
    content_type = ("Content-Type", "multipart/form-data; boundary=B")

    reply = await door.ask(request("POST", path, body=body, headers=[content_type]))

    [call] = door.gateway.calls
    assert reply.status == 200
    assert (call.route.path, call.model, call.body) == (path, "m1", body)
    assert door.records[0].model == "m1"


async def test_a_form_route_takes_no_json(door):
    reply = await door.ask(request("POST", "/v1/images/edits", body=b'{"model":"m1"}'))

    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "multipart/form-data" in reply.json["error"]["message"]


async def test_what_is_noted_on_the_way_goes_into_the_access_record(door):
    async def serving(call, principal, downstream):
        door.gateway.journey.attempt("p/a", now=1.0)
        door.gateway.journey.attempt("p/b", now=2.0)
        downstream.respond(200, (), b"{}")

    door.gateway.serving = serving

    await door.ask(chat())

    [record] = door.records
    assert (record.assignment, record.attempts) == ("p/b", 2)
    assert 0 < record.overhead < record.seconds


async def test_a_refused_request_has_no_attempt(door):
    await door.ask(chat(b"not json"))

    [record] = door.records
    assert (record.status, record.assignment, record.attempts) == (400, None, 0)
