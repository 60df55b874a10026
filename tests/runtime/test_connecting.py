from __future__ import annotations

import pytest

from llmgw.core.config import RoutingConfig, WebsocketConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.runtime.answer import Refused
from llmgw.runtime.connecting import HANDSHAKE_WITHIN, Connecting
from tests.builders import account
from tests.fakes.sockets import FakeSocket, refused
from tests.fakes.turn_scene import TurnScene, turn_of

UPSTREAM = account("a", credential=(("authorization", "Bearer up-CANARY"),))
CANDIDATE = Candidate("p/a", UPSTREAM)
ERROR = {"error": {"code": "model_not_found", "type": "x", "message": "m"}}


async def opened(script, *, explained: bool = False, headers=(), **sections):
    scene = TurnScene(script, **sections)
    connecting = Connecting(scene.gateway._tools, scene.sockets, scene.config, explained)
    call = turn_of().call._replace(headers=headers)
    return await connecting.open(CANDIDATE, call, protocols=("realtime",)), scene


async def test_an_upstream_is_asked_with_its_own_credential_and_nothing_of_the_clients_handshake():
    socket = FakeSocket()
    lines = (
        ("authorization", "Bearer gw-CANARY"),
        ("sec-websocket-key", "x"),
        ("openai-beta", "b=v2"),
        ("cookie", "c"),
    )

    found, scene = await opened(socket, headers=lines)

    assert found is socket
    (asked,) = scene.sockets.asked
    headers = dict(asked["headers"])
    assert headers["authorization"] == "Bearer up-CANARY"
    assert headers["openai-beta"] == "b=v2"
    assert not {"cookie", "sec-websocket-key"} & set(headers)
    assert (asked["target"], asked["protocols"]) == ("/v1/responses", ("realtime",))


@pytest.mark.parametrize(
    ("header_timeout", "within"), [(None, HANDSHAKE_WITHIN), (3.0, 3.0)], ids=["ours", "set"]
)
async def test_the_limits_are_those_of_the_configuration(header_timeout, within):
    routing = RoutingConfig(connect_timeout=2.0, header_timeout=header_timeout)
    limits = WebsocketConfig(max_frame_bytes=77)

    _, scene = await opened(FakeSocket(), routing=routing, websocket=limits)

    (asked,) = scene.sockets.asked
    assert (asked["connect_timeout"], asked["handshake_timeout"]) == (2.0, within)
    assert asked["max_bytes"] == 77


@pytest.mark.parametrize("status", [400, 403, 404, 405, 426, 501])
@pytest.mark.parametrize("body", [None, ERROR], ids=["empty", "an error"])
async def test_statuses_that_say_that_there_are_no_websockets(status, body):
    found, _ = await opened(refused(status, body))

    assert isinstance(found, Refused)
    assert found.fault.kind is FaultKind.UNSUPPORTED


async def test_where_there_must_be_websockets_an_explained_refusal_is_what_it_says():
    explained, _ = await opened(refused(404, ERROR), explained=True)
    bare, _ = await opened(refused(404), explained=True)

    assert (explained.fault.kind, explained.fault.code) == (FaultKind.STATUS, "model_not_found")
    assert bare.fault.kind is FaultKind.UNSUPPORTED


@pytest.mark.parametrize("status", [401, 429, 500, 503])
async def test_other_statuses_are_failures_as_they_are_over_http(status):
    found, _ = await opened(refused(status, headers=(("retry-after", "7"),)))

    assert (found.fault.kind, found.fault.status) == (FaultKind.STATUS, status)
    assert found.fault.retry_after == 7


@pytest.mark.parametrize("status", [200, 204, 302])
async def test_what_is_no_refusal_and_no_upgrade_is_invalid(status):
    found, _ = await opened(refused(status))

    assert found.fault.kind is FaultKind.INVALID


async def test_no_connection_is_raised():
    with pytest.raises(UpstreamError) as error:
        await opened(UpstreamError(FaultKind.CONNECT))

    assert error.value.kind is FaultKind.CONNECT
