"""The websockets of the gateway: `GET /v1/responses` and `GET /v1/realtime`, upgraded."""

from __future__ import annotations

import time
from collections.abc import Mapping

from llmgw.core.errors import GatewayError, InvalidRequest, MethodNotAllowed
from llmgw.core.headers import refuse_loop
from llmgw.core.policy import Principal, admit
from llmgw.core.realtime import REALTIME, parse_realtime
from llmgw.core.turns import TURNS, session_headers
from llmgw.core.types import PoolName
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.live import LiveSession, Visitor
from llmgw.runtime.realtime import RealtimeAttempts
from llmgw.runtime.sockets import Sockets
from llmgw.runtime.support import WebsocketSupport
from llmgw.runtime.watchman import Draining
from llmgw.runtime.way import Way
from llmgw.web.incoming import Handler, Incoming
from llmgw.web.table import Page
from llmgw.web.upgrade import is_upgrade, parse_upgrade, token_of_upgrade
from llmgw.web.websocket import ClientWebSocket, accept

ALLOW = "OPTIONS, POST"


class LiveDoor:
    """Answers upgrades. What it finds out of upstreams is shared by all of its websockets."""

    def __init__(self, gateway: Gateway, sockets: Sockets, draining: Draining) -> None:
        self._gateway = gateway
        self._sockets = sockets
        self._draining = draining
        self.support = WebsocketSupport(lambda: gateway.snapshot)

    @property
    def upgrades(self) -> Mapping[str, Handler]:
        """For paths that are also POSTed to."""
        return {TURNS.path: self.responses}

    @property
    def pages(self) -> tuple[Page, ...]:
        return (Page(REALTIME.path, {"GET": self.realtime}, REALTIME.dialect),)

    async def responses(self, incoming: Incoming) -> None:
        if not is_upgrade(incoming):
            raise MethodNotAllowed(f"{TURNS.path} takes {ALLOW}", headers=(("allow", ALLOW),))
        config = self._gateway.config
        principal, token = self._authenticate(incoming)
        upgrade = parse_upgrade(incoming)
        if not config.websocket.bridge:
            self._expect_websockets(principal.pool)
        chosen = next(iter(upgrade.protocols), None)
        limit = config.websocket.max_frame_bytes
        client = accept(incoming, upgrade, protocol=chosen, max_bytes=limit)
        headers = session_headers(incoming.headers)
        visitor = Visitor(token, headers, TURNS.path + incoming.query)
        session = LiveSession(
            self._gateway,
            client,
            visitor,
            sockets=self._sockets,
            support=self.support,
            draining=self._draining,
        )
        await session.run()
        await client.finished()

    async def realtime(self, incoming: Incoming) -> None:
        if not is_upgrade(incoming):
            raise _upgrade_required("this path takes websockets alone")
        config = self._gateway.config
        principal, token = self._authenticate(incoming)
        upgrade = parse_upgrade(incoming)
        call = parse_realtime(
            incoming.query,
            headers=session_headers(incoming.headers),
            models=config.models,
            request_id=incoming.request_id,
        )
        incoming.model = call.model
        admit(principal, call)
        clients: list[ClientWebSocket] = []

        def accept_with(protocol: str | None) -> ClientWebSocket:
            chosen = protocol or next(iter(upgrade.protocols), None)
            limit = config.websocket.max_frame_bytes
            clients.append(accept(incoming, upgrade, protocol=chosen, max_bytes=limit))
            return clients[0]

        attempts = RealtimeAttempts(
            self._gateway,
            self._sockets,
            token=token,
            protocols=upgrade.protocols,
            accept=accept_with,
            draining=self._draining,
        )
        way = Way(attempts, websocket=True, commits_early=False)
        await self._gateway.serve(
            call, principal, incoming.downstream, way, journey=incoming.journey
        )
        for client in clients:
            await client.finished()

    def _authenticate(self, incoming: Incoming) -> tuple[Principal, str | None]:
        """Raises before the upgrade: a client is told by a status."""
        headers = incoming.headers
        token = token_of_upgrade(headers)
        principal = self._gateway.keyring.authenticate(token, now=time.time())
        incoming.key = principal.name
        refuse_loop(headers, instance=self._gateway.instance)
        return principal, token

    def _expect_websockets(self, pool: PoolName) -> None:
        members = self._gateway.snapshot.members.get(pool, ())
        if all(self.support.of(upstream) is False for _, upstream in members):
            raise _upgrade_required("no upstream takes websockets; send a POST instead")


def _upgrade_required(message: str) -> GatewayError:
    return InvalidRequest(
        message, status=426, code="upgrade_required", headers=(("upgrade", "websocket"),)
    )
