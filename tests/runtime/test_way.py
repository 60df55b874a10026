from llmgw.core.config import WebsocketConfig
from llmgw.core.frames import Closed
from llmgw.runtime.attempt import run_attempt
from llmgw.runtime.way import HTTP
from tests.fakes.live import create, whole
from tests.fakes.sockets import FakeSocket, refused, said
from tests.fakes.turn_scene import TurnScene


def test_a_call_is_a_plain_request_that_owes_a_status_line_unless_it_is_said_otherwise():
    assert HTTP.attempt is run_attempt
    assert (HTTP.pin, HTTP.websocket, HTTP.commits_early) == (None, False, True)


async def test_a_way_of_websockets_alone_asks_nobody_who_is_known_to_take_none():
    scene = TurnScene(takes=False, websocket=WebsocketConfig(bridge=False))

    await scene.session(create(), Closed(1000)).run()

    assert scene.client.events[0]["error"]["code"] == "no_eligible_backend"
    assert scene.sockets.asked == []


async def test_a_way_that_is_pinned_is_never_left():
    line = FakeSocket(*map(said, whole()))
    scene = TurnScene(line, refused(503), FakeSocket(*map(said, whole("resp_b"))))

    await scene.session(create(), line.abort, create(), Closed(1000)).run()

    assert [one["upstream"] for one in scene.sockets.asked] == ["a", "a"]
    assert scene.client.events[-1]["status"] == 503
