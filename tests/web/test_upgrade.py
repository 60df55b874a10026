from __future__ import annotations

import pytest
from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.test_utils import make_mocked_request

from llmgw.core.errors import InvalidRequest
from llmgw.web.incoming import Incoming
from llmgw.web.upgrade import is_upgrade, offered_protocols, parse_upgrade, token_of_upgrade

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ASKED = {
    "connection": "keep-alive, Upgrade",
    "upgrade": "WebSocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": KEY,
}
SECRET = "openai-insecure-api-key.sk-CANARY"


def incoming(method: str = "GET", version=HttpVersion11, **changes: str) -> Incoming:
    lines = {name.replace("_", "-"): value for name, value in changes.items()}
    headers = {name: value for name, value in (ASKED | lines).items() if value}
    return Incoming(make_mocked_request(method, "/", headers, version=version), "req_1", None)


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param({}, True, id="both lines"),
        pytest.param({"connection": "close"}, False, id="no connection: upgrade"),
        pytest.param({"upgrade": "h2c"}, False, id="another upgrade"),
        pytest.param({"upgrade": ""}, False, id="none"),
    ],
)
def test_what_asks_for_a_websocket(changes, asked):
    assert is_upgrade(incoming(**changes)) is asked


def test_an_upgrade_is_accepted_with_its_proof_and_an_offered_protocol():
    upgrade = parse_upgrade(incoming(sec_websocket_protocol=f"realtime, {SECRET}, other"))

    assert upgrade.protocols == ("realtime", "other")
    assert dict(upgrade.headers("other")) == {
        "upgrade": "websocket",
        "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        "sec-websocket-protocol": "other",
    }


@pytest.mark.parametrize("protocol", [None, SECRET, "another"])
def test_what_was_not_offered_or_is_a_secret_is_never_echoed(protocol):
    upgrade = parse_upgrade(incoming(sec_websocket_protocol=f"realtime, {SECRET}"))

    assert "sec-websocket-protocol" not in dict(upgrade.headers(protocol))


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        pytest.param(lambda: incoming(sec_websocket_version="8"), 426, id="an old version"),
        pytest.param(lambda: incoming(sec_websocket_key=""), 400, id="no key"),
        pytest.param(lambda: incoming(sec_websocket_key="c2hvcnQ="), 400, id="a short key"),
        pytest.param(lambda: incoming(sec_websocket_key="?" * 24), 400, id="no base64"),
        pytest.param(lambda: incoming(method="HEAD"), 400, id="no GET"),
        pytest.param(lambda: incoming(version=HttpVersion10), 400, id="HTTP/1.0"),
    ],
)
def test_a_handshake_that_can_not_be_accepted(request_of, status):
    with pytest.raises(InvalidRequest) as refused:
        parse_upgrade(request_of())

    assert refused.value.status == status


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        pytest.param((), None, id="none"),
        pytest.param((("authorization", "Bearer a"),), "a", id="a header"),
        pytest.param((("sec-websocket-protocol", f"x, {SECRET}"),), "sk-CANARY", id="a protocol"),
        pytest.param(
            (("sec-websocket-protocol", SECRET), ("x-api-key", "a")), "a", id="a header first"
        ),
    ],
)
def test_where_the_key_stands(headers, token):
    assert token_of_upgrade(headers) == token


def test_protocols_may_stand_in_several_lines():
    lines = (("sec-websocket-protocol", "a, b"), ("x", "y"), ("sec-websocket-protocol", "c,"))

    assert offered_protocols(lines) == ("a", "b", "c")
