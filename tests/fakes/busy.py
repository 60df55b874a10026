"""A gateway whose upstreams get a head each and then have no connection for it: what a request by
express comes to, without a socket."""

from __future__ import annotations

from hashlib import sha256

from llmgw.core.config import KeyConfig, Upstream
from llmgw.core.discovery import Listed
from llmgw.core.http import UpstreamRequest
from llmgw.core.policy import KeyRing
from llmgw.core.types import CLUSTER
from llmgw.runtime.express import Express
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.registry import Registry
from llmgw.upstream.request import render_head
from llmgw.web.express import ExpressDoor
from tests.builders import POOL, account, config, node
from tests.fakes.live import FakeWatch
from tests.fakes.stores import FakeDatabase

INSTANCE = "abc123"
TOKENS = {CLUSTER: "gw-of-the-nodes", POOL: "gw-of-the-account"}


class BusyUpstreams:
    """Satisfies what `Express` asks of `llmgw.runtime.ports.Upstreams`."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []

    def render(self, upstream: Upstream, request: UpstreamRequest) -> bytes:
        return render_head(upstream.url, request)

    def pool(self, upstream: Upstream) -> BusyUpstreams:
        return self

    def begin(self, head: bytes, body: bytes, *, within: float) -> None:
        self.heads.append(head)


class Busy:
    """Two nodes and an account, each with a key of its pool; all serve m1."""

    def __init__(self, nodes: int = 2, **account_fields: object) -> None:
        self.nodes = [node(f"n{number}", 8001 + number) for number in range(nodes)]
        self.account = account("acct", **account_fields)
        built = config(*self.nodes, self.account, models=("m1",))
        self.upstreams = BusyUpstreams()
        self.gateway = Gateway(
            built,
            KeyRing.from_keys(
                KeyConfig(pool, sha256(token.encode()).hexdigest(), pool=pool)
                for pool, token in TOKENS.items()
            ),
            registry=Registry(built),
            upstreams=self.upstreams,
            watch=FakeWatch(),
            stores=FakeDatabase().stores,
            instance=INSTANCE,
        )
        for one in (*self.nodes, self.account):
            self.gateway.registry.discovery_event(one, Listed(("m1",), 0.0))
        self.express = Express(self.gateway)

    def door(self) -> ExpressDoor:
        """One that knows no head."""
        return ExpressDoor(self.gateway, self.express, tell=print)

    def sent(self, door: ExpressDoor, data: bytes) -> bytes | None:
        """The head that an upstream was to get; None: it was not for the express."""
        self.upstreams.heads.clear()
        assert door.take(None, data) is None
        return self.upstreams.heads[0] if self.upstreams.heads else None
