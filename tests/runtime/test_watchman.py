from __future__ import annotations

import pytest

from llmgw.core.errors import AuthenticationFailed
from llmgw.runtime.watchman import Watchman
from tests.fakes.live import TOKEN
from tests.fakes.sockets import FakeSocket
from tests.fakes.turn_scene import TurnScene


class Watched:
    def __init__(self, token: str | None = TOKEN) -> None:
        self.scene = TurnScene()
        self.client = FakeSocket()
        self.watchman = Watchman(
            self.scene.gateway, self.client, token, lambda: self.scene.draining
        )


async def test_whoever_may_stay_stays():
    watched = Watched()

    with watched.watchman.idle():
        watched.watchman.tick(7.0)

    assert watched.client.closed is None
    assert watched.client.beats == [7.0]
    assert not watched.watchman.has_ended


async def test_a_drain_ends_it_when_it_becomes_idle():
    watched = Watched()
    watched.scene.draining = True
    assert watched.client.closed is None

    with watched.watchman.idle():
        assert watched.client.closed == (1001, "the gateway is stopping")

    assert watched.watchman.has_ended


async def test_a_drain_ends_it_while_it_is_idle():
    watched = Watched()

    with watched.watchman.idle():
        watched.scene.draining = True
        watched.watchman.tick(1.0)

    assert watched.client.closed == (1001, "the gateway is stopping")


async def test_a_revoked_key_ends_it_with_a_code_of_its_own():
    watched = Watched()

    with watched.watchman.idle():
        watched.scene.revoke()
        watched.watchman.tick(1.0)

    assert watched.client.closed[0] == 1008
    assert TOKEN not in watched.client.closed[1]


async def test_nothing_ends_it_in_the_middle_of_something():
    watched = Watched()
    with watched.watchman.idle():
        pass

    watched.scene.revoke()
    watched.scene.draining = True
    watched.watchman.tick(1.0)

    assert watched.client.closed is None
    assert watched.client.beats == [1.0]


async def test_the_key_is_asked_for_as_the_keys_are_now():
    watched = Watched()
    assert watched.watchman.authenticate().pool == "p"

    watched.scene.revoke()

    with pytest.raises(AuthenticationFailed):
        watched.watchman.authenticate()
