"""Which upstreams take websockets: configured, or found out and remembered with the snapshot."""

from __future__ import annotations

from collections.abc import Callable

from llmgw.core.config import BaseUrl, Upstream
from llmgw.core.types import UpstreamName
from llmgw.runtime.snapshot import Snapshot

UNSUPPORTED = frozenset({400, 403, 404, 405, 426, 501})
"""Statuses of a refused upgrade that say the upstream has no websockets there."""

Place = tuple[UpstreamName, BaseUrl]


class WebsocketSupport:
    """True: it takes them. False: it does not. None: nobody has asked yet."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._seen: Snapshot | None = None
        self._found: dict[Place, bool] = {}  # with that one

    def of(self, upstream: Upstream) -> bool | None:
        if upstream.websocket is not None:
            return upstream.websocket
        return self._known().get((upstream.name, upstream.url))

    def note(self, upstream: Upstream, *, takes: bool) -> None:
        self._known()[upstream.name, upstream.url] = takes

    def _known(self) -> dict[Place, bool]:
        snapshot = self._snapshot()
        if snapshot is not self._seen:
            self._seen, self._found = snapshot, {}
        return self._found
