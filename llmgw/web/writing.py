"""The writing half of a client connection: a client takes its answers when it likes, or never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from llmgw.web.loop import RequestLoop
from llmgw.web.watches import FlushWatch


class AnsweringLoop(RequestLoop):
    """Tells who writes when the client stops taking, and serves nothing more until it goes on."""

    __slots__ = ("_drained", "_flush_watch", "_on_pause", "_on_resume")

    def __init__(self, server: Any, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(server, loop=loop, **options)
        self._on_pause: Callable[[], None] | None = None
        self._on_resume: Callable[[], None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._flush_watch = FlushWatch(loop)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._flush_watch.end()
        self._on_pause = self._on_resume = None
        super().connection_lost(exc)

    async def start(self) -> None:
        transport = self.transport
        try:
            await super().start()
        finally:
            self._flush_watch.begin(transport)

    def force_close(self) -> None:
        transport = self.transport
        super().force_close()
        self._flush_watch.begin(transport)

    def write(self, data: bytes) -> None:
        """Does nothing for a client that has left: its handler is being cancelled."""
        transport = self.transport
        if transport is not None:
            transport.write(data)

    def on_pause(
        self, pause: Callable[[], None] | None, resume: Callable[[], None] | None
    ) -> None:
        self._on_pause, self._on_resume = pause, resume

    async def drained(self) -> None:
        while self.writing_paused:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._on_pause is not None:
            self._on_pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self._on_resume is not None:
            self._on_resume()

    async def _serve_next(self) -> bool:
        """A request costs its client less than its answer costs us: answers to pipelined
        requests that nobody takes would pile up."""
        if self.writing_paused:
            self._flush_watch.begin(self.transport)
            await self.drained()
            self._flush_watch.end()
        return await super()._serve_next()
