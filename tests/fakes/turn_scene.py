"""A gateway of accounts `a` and `b` that list model `m1`, with scripted websockets to them."""

from __future__ import annotations

from typing import Any

from llmgw.core.config import ModelsConfig
from llmgw.core.policy import KeyRing
from llmgw.core.turns import Turn, parse_turn
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.live import LiveSession, Visitor
from llmgw.runtime.registry import Registry
from llmgw.runtime.support import WebsocketSupport
from llmgw.runtime.wheel import Wheel
from tests.builders import account, config
from tests.fakes.clock import Clock
from tests.fakes.exchange import FakeUpstreams
from tests.fakes.live import TOKEN, keyring
from tests.fakes.scene import FakeWatch
from tests.fakes.sockets import FakeSocket, FakeSockets, said
from tests.fakes.stores import FakeDatabase


class TurnScene:
    """`sockets` are opened in order, `posts` answer what goes over SSE."""

    def __init__(
        self,
        *sockets: Any,
        posts: tuple[Any, ...] = (),
        takes: bool | None = None,
        **sections: Any,
    ) -> None:
        accounts = [account(name, models=("m1",), websocket=takes) for name in "ba"]
        self.config = config(*accounts, **sections)
        self.clock = Clock()
        self.sockets = FakeSockets(list(sockets))
        self.posts = FakeUpstreams(*posts)
        self.watch = FakeWatch()
        self.database = FakeDatabase()
        self.gateway = Gateway(
            self.config,
            keyring(),
            registry=Registry(self.config),
            upstreams=self.posts,
            watch=self.watch,
            stores=self.database.stores,
            instance="gw1",
            clock=self.clock,
        )
        self.gateway.wheel = Wheel(1.0, self.clock)
        self.support = WebsocketSupport(lambda: self.gateway.snapshot)
        self.draining = False
        self.client = FakeSocket()

    def session(self, *come: Any) -> LiveSession:
        """Of a client that sends this."""
        self.client.comes(*(one if not isinstance(one, dict) else said(one) for one in come))
        return LiveSession(
            self.gateway,
            self.client,
            Visitor(TOKEN, (("authorization", f"Bearer {TOKEN}"),), "/v1/responses"),
            sockets=self.sockets,
            support=self.support,
            draining=lambda: self.draining,
        )

    def revoke(self) -> None:
        self.gateway.keyring = KeyRing({})

    @property
    def attempts(self) -> list[list[tuple[str, str]]]:
        rows = (settlement.attempts for settlement, _ in self.database.requests.recorded)
        return [[(one.assignment, one.outcome.value) for one in attempts] for attempts in rows]


def turn_of(frame: bytes = b'{"type":"response.create","model":"m1","input":"hi"}') -> Turn:
    turn = parse_turn(
        frame, target="/v1/responses", headers=(), models=ModelsConfig(), request_id="req_1"
    )
    assert turn is not None
    return turn
