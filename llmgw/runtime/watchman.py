"""What ends a websocket that is in the middle of nothing: a drain, a revoked key, silence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmgw.core.errors import AuthenticationFailed
from llmgw.core.frames import CloseCode
from llmgw.core.policy import Principal
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.sockets import Socket

Draining = Callable[[], bool]


class Watchman:
    """Looks after a client's websocket, on the ticks of the wheel and when it becomes idle."""

    def __init__(
        self, gateway: Gateway, client: Socket, token: str | None, draining: Draining
    ) -> None:
        self._gateway = gateway
        self._client = client
        self._token = token
        self._is_draining = draining
        self._is_idle = False
        self.has_ended = False

    def authenticate(self) -> Principal:
        """As the keys are now. Raises `AuthenticationFailed`."""
        return self._gateway.keyring.authenticate(self._token, now=time.time())

    @contextmanager
    def idle(self) -> Iterator[None]:
        """While nothing is asked, the websocket may be ended."""
        self._is_idle = True
        self.look()
        try:
            yield
        finally:
            self._is_idle = False

    def tick(self, now: float) -> None:
        self._client.beat(now)
        if self._is_idle:
            self.look()

    def look(self) -> None:
        """End it if it must not go on."""
        if self._is_draining():
            self._end(CloseCode.GOING_AWAY, "the gateway is stopping")
            return
        try:
            self.authenticate()
        except AuthenticationFailed as error:
            self._end(CloseCode.POLICY_VIOLATION, error.message)

    def _end(self, code: CloseCode, reason: str) -> None:
        self.has_ended = True
        self._client.close(code, reason)
