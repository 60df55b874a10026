"""A client's side that remembers what it was sent."""

import asyncio
from collections.abc import Callable

from llmgw.core.types import Headers


class FakeDownstream:
    """Satisfies `llmgw.runtime.ports.Downstream`; `stall` and `flow` play a slow client."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: Headers = ()
        self.body = b""
        self.ending: str | None = None  # "whole", "whole, closed", "cut"
        self.paused = False
        self._flowing: asyncio.Future[None] | None = None
        self._pause: Callable[[], None] = lambda: None
        self._resume: Callable[[], None] = lambda: None

    @property
    def committed(self) -> bool:
        return self.status is not None

    @property
    def bytes_sent(self) -> int:
        return len(self.body)

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        self.commit(status, headers)
        self.write(body)
        self.finish()

    def commit(self, status: int, headers: Headers) -> None:
        assert self.status is None, "one status line"
        self.status, self.headers = status, headers

    def write(self, data: bytes, chunk: bytes | None = None) -> None:
        assert self.committed, "no body before its head"
        assert self.ending is None, "nothing after the end"
        self.body += data

    def bypass(self, kept: bytearray, most: int) -> None: ...

    def cork(self) -> None: ...

    def uncork(self) -> None: ...

    def finish(self, *, close: bool = False) -> None:
        self._end("whole, closed" if close else "whole")

    def cut(self) -> None:
        self._end("cut")

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume

    async def drained(self) -> None:
        while self.paused:
            self._flowing = asyncio.get_running_loop().create_future()
            await self._flowing

    def stall(self) -> None:
        self.paused = True
        self._pause()

    def flow(self) -> None:
        self.paused = False
        self._resume()
        if self._flowing is not None and not self._flowing.done():
            self._flowing.set_result(None)

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)

    def _end(self, how: str) -> None:
        assert self.ending is None, "one end"
        self.ending = how
