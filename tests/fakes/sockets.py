"""Websockets without a wire: what is said stands in lists, what comes is up to the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from llmgw.core.errors import UpstreamError
from llmgw.core.frames import Closed, Message
from llmgw.core.http import Rejection, ResponseHead


def said(event: object) -> Message:
    return Message(json.dumps(event).encode())


def refused(status: int, body: object = None, headers: tuple = ()) -> Rejection:
    text = b"" if body is None else json.dumps(body).encode()
    return Rejection(ResponseHead(status, headers), text)


class FakeSocket:
    """Satisfies both `ClientSocket` and `UpstreamSocket`. `come` is what it receives, in order;
    a function in it is called when its turn comes."""

    def __init__(self, *come: Message | Closed | Callable[[], None]) -> None:
        self._come = list(come)
        self._woken = asyncio.Event()
        self._flows = asyncio.Event()
        self.sent: list[Message] = []
        self.closed: tuple[int, str] | None = None  # by us
        self.ended: Closed | None = None
        self.protocol: str | None = None
        self.beats: list[float] = []
        self.dropped = 0
        self.aborted = False
        self.paused = False
        self.stuck = False  # `send` does not return

    def comes(self, *more: Message | Closed) -> None:
        self._come += more
        self._woken.set()

    @property
    def events(self) -> list[Any]:
        return [json.loads(one.data) for one in self.sent]

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if self.stuck:
            await asyncio.Event().wait()

    def write(self, data: bytes) -> None:
        self.sent.append(Message(data))

    async def receive(self) -> Message | Closed:
        while True:
            if self.ended is not None:
                return self.ended
            if not self._come:
                self._woken.clear()
                await self._woken.wait()
                continue
            found = self._come.pop(0)
            if callable(found):
                found()
                continue
            if isinstance(found, Closed):
                self.ended = found
            return found

    async def drop(self) -> None:
        self.dropped += 1

    def close(self, code: int = 1000, reason: str = "") -> None:
        if self.closed is None:
            self.closed = code, reason
        self._end(Closed(code, reason))

    def abort(self) -> None:
        self.aborted = True
        self._end(Closed(1006))

    def beat(self, now: float) -> None:
        self.beats.append(now)

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        return

    async def drained(self) -> None:
        await self._flows.wait()

    def flow(self) -> None:
        self.paused = False
        self._flows.set()

    def _end(self, closed: Closed) -> None:
        if self.ended is None:
            self.ended = closed
        self._woken.set()


@dataclass
class FakeSockets:
    """Opens the next of `script`: a socket, a rejection, or what is to be raised."""

    script: list[FakeSocket | Rejection | UpstreamError] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def open(self, upstream: Any, **asked: Any) -> FakeSocket | Rejection:
        self.asked.append({"upstream": upstream.name, **asked})
        found = self.script.pop(0)
        if isinstance(found, UpstreamError):
            raise found
        return found
