"""The early commit: held back as long as it is bearable, then 200 and signs of life."""

from llmgw.core.config import StreamsConfig
from llmgw.core.types import Dialect
from llmgw.runtime.early import EarlyCommit
from llmgw.runtime.wheel import Wheel
from tests.fakes.downstream import FakeDownstream

LIMITS = StreamsConfig(commit_after=10.0, keepalive=4.0)
HEADERS = (("content-type", "text/event-stream"),)


class Scene:
    def __init__(self, dialect: Dialect = Dialect.CHAT) -> None:
        self.now = 0.0
        self.client = FakeDownstream()
        self.wheel = Wheel(1.0, clock=lambda: self.now)
        self.early = EarlyCommit(
            self.client,
            dialect=dialect,
            headers=HEADERS,
            limits=LIMITS,
            wheel=self.wheel,
            started=0.0,
        )

    def at(self, now: float) -> None:
        self.now = now
        self.wheel.turn()


def test_the_status_line_is_held_back_until_the_wait_is_too_long():
    scene = Scene()

    scene.at(9.9)
    assert not scene.client.committed
    scene.at(10.0)

    assert (scene.client.status, scene.client.headers) == (200, HEADERS)
    assert scene.client.body == b""


def test_then_a_keepalive_comes_whenever_silence_is_due_one():
    scene = Scene()

    for now in (10.0, 13.9, 14.0, 16.0, 18.0):
        scene.at(now)

    assert scene.client.body == b": keepalive\n" * 2


def test_anthropics_clients_get_pings():
    scene = Scene(Dialect.MESSAGES)

    scene.at(10.0)
    scene.at(14.0)

    assert scene.client.body == b'event: ping\ndata: {"type": "ping"}\n\n'


def test_a_client_that_takes_nothing_is_not_given_more():
    scene = Scene()
    scene.at(10.0)
    scene.client.paused = True

    scene.at(14.0)

    assert scene.client.body == b""


def test_once_somebody_else_writes_it_is_silent():
    scene = Scene()

    scene.early.stop()
    scene.at(20.0)

    assert not scene.client.committed
    assert len(scene.wheel) == 0
