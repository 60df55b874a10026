"""What the server is told of an answer that has been written past its own response machinery."""

from __future__ import annotations

from aiohttp import web


class Sent(web.StreamResponse):
    """A response that is on its way: nothing is left to do but to keep or close the connection."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self._keep_alive = keep  # else the connection would be closed after each answer

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


KEPT = Sent(keep=True)
ENDED = Sent(keep=False)
