"""The wait for the first visible event: the status line is held back, but not for ever.

After `streams.commit_after` the client gets 200, the head of an event stream and keepalives,
while the attempt stays replaceable.
"""

from __future__ import annotations

from llmgw.core.answers import keepalive
from llmgw.core.config import StreamsConfig
from llmgw.core.types import Dialect, Headers
from llmgw.runtime.ports import Downstream
from llmgw.runtime.wheel import Wheel


class EarlyCommit:
    """Commits one streaming call when its wait has grown too long, and keeps it alive then."""

    __slots__ = ("_due", "_headers", "_keepalive", "_limits", "_to", "_wheel")

    def __init__(
        self,
        to: Downstream,
        *,
        dialect: Dialect,
        headers: Headers,
        limits: StreamsConfig,
        wheel: Wheel,
        started: float,
    ) -> None:
        self._to = to
        self._headers = headers
        self._keepalive = keepalive(dialect)
        self._limits = limits
        self._wheel = wheel
        self._due = started + limits.commit_after
        wheel.add(self)

    def tick(self, now: float) -> None:
        if now < self._due:
            return
        self._due = now + self._limits.keepalive
        if not self._to.committed:
            self._to.commit(200, self._headers)
        elif not self._to.paused:
            self._to.write(self._keepalive)

    def stop(self) -> None:
        """From here on somebody else writes."""
        self._wheel.discard(self)
