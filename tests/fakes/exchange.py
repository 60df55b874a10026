"""Scripted upstreams without sockets: what `open` answers, and how a body comes and ends."""

import asyncio
from collections.abc import Callable

from llmgw.core.config import Upstream
from llmgw.core.errors import UpstreamError
from llmgw.core.http import ResponseHead, Sink, UpstreamRequest

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)


class FakeExchange:
    """A body of `reads`, then its end: None (whole) or the error that ends it."""

    def __init__(
        self,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = SSE,
        reads: tuple[bytes, ...] = (),
        end: UpstreamError | None = None,
        *,
        hangs: bool = False,
    ) -> None:
        self.head = ResponseHead(status, headers)
        self.aborted = False
        self.paused = False
        self.sink: Sink | None = None
        self._reads = list(reads)
        self._end = end
        self.hangs = hangs
        self._failed: asyncio.Future[bytes] | None = None

    async def read(self) -> bytes:
        if self._reads:
            return self._reads.pop(0)
        if self.hangs:
            self._failed = asyncio.get_running_loop().create_future()
            return await self._failed
        if self._end is not None:
            raise self._end
        return b""

    def splice_to(self, sink: Sink) -> None:
        self.sink = sink
        for data in self._reads:
            sink.feed(data)
        self._reads.clear()
        if not self.hangs:
            sink.end(self._end)

    def push(self, data: bytes) -> None:
        assert self.sink is not None
        self.sink.feed(data)

    def go_past(self, way: object) -> None: ...

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def fail(self, fault: UpstreamError) -> None:
        if self.sink is not None:
            self.sink.end(fault)
        elif self._failed is not None:
            self._failed.set_exception(fault)

    def abort(self) -> None:
        self.aborted = True


class FakeUpstreams:
    """Answers each `open` with the next of the script, whoever is asked; keeps the requests."""

    def __init__(self, *script: FakeExchange | UpstreamError | None) -> None:
        """None: never answers."""
        self._script = list(script)
        self.asked: list[tuple[str, UpstreamRequest]] = []
        self.fail: Callable[[UpstreamError], None] | None = None

    async def open(
        self,
        upstream: Upstream,
        request: UpstreamRequest,
        *,
        connect_timeout: float,
        header_timeout: float | None,
        on_sent: Callable[[Callable[[UpstreamError], None]], None] | None = None,
        fresh: bool = False,
    ) -> FakeExchange:
        self.asked.append((upstream.name, request))
        answer = self._script.pop(0)
        if isinstance(answer, UpstreamError):
            raise answer
        if answer is None:
            waiting: asyncio.Future[FakeExchange] = asyncio.get_running_loop().create_future()
            self.fail = waiting.set_exception
            if on_sent is not None:
                on_sent(waiting.set_exception)
            return await waiting
        return answer

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]
