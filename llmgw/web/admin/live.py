"""Live updates: what has changed on a page goes to whoever looks at it, as an event stream.

A page that is looked at for long costs little: values are compared, and only those that changed
are rendered, outside of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import orjson
from aiohttp import web
from aiohttp_sse import EventSourceResponse

from llmgw.core.config import AdminUser
from llmgw.core.errors import GatewayError, MethodNotAllowed
from llmgw.web.admin.desk import Desk
from llmgw.web.admin.ports import Gateway
from llmgw.web.admin.rendering import Part, Piece, render_parts
from llmgw.web.admin.replies import HEADERS
from llmgw.web.admin.views import View, wish_of
from llmgw.web.incoming import Incoming

TICK: Final = 2.0  # seconds
PING: Final = 15.0
MOST_LIVE: Final = 32  # streams; a page without one is whole all the same

Known = Mapping[str, object]
WhoIs = Callable[[Incoming], AdminUser | None]


class Live:
    """All live streams of one gateway."""

    def __init__(self, gateway: Gateway, desk: Desk, who_is: WhoIs, *, tick: float = TICK) -> None:
        self._gateway = gateway
        self._desk = desk
        self._who_is = who_is
        self._tick = tick
        self._open = 0

    async def answer(self, incoming: Incoming, view: View) -> web.StreamResponse:
        """Until the client leaves, the session ends, or the gateway does."""
        if incoming.request.method != "GET":
            raise MethodNotAllowed("an event stream can only be read by GET")
        if self._open >= MOST_LIVE:
            raise GatewayError("too many live pages are open", status=503, code="too_many_live")
        self._open += 1
        try:
            headers = {**HEADERS, "x-request-id": incoming.request_id}
            response = EventSourceResponse(headers=headers, sep="\n", ping_interval=PING)
            await response.prepare(incoming.request)
            async with response:
                await self._follow(response, incoming, view)
            return response
        finally:
            self._open -= 1

    async def _follow(self, response: EventSourceResponse, incoming: Incoming, view: View) -> None:
        known: Known | None = None
        while not self._gateway.draining:
            operator = self._who_is(incoming)
            if operator is None:
                await response.send("", event="end")
                return
            wish = wish_of(self._gateway.config, operator, incoming.query)
            parts = await view.parts(self._desk, wish)
            if known is not None and known.keys() != {part.id for part in parts}:
                await response.send("", event="reload")
                return
            await self._tell(response, [one for one in parts if _is_new(known, one)])
            known = {part.id: part.value for part in parts}
            await asyncio.sleep(self._tick)

    async def _tell(self, response: EventSourceResponse, parts: list[Part]) -> None:
        if parts:
            pieces = await asyncio.to_thread(render_parts, parts)
            await response.send(_event(pieces), event="parts")


def _is_new(known: Known | None, part: Part) -> bool:
    return known is None or known[part.id] != part.value


def _event(pieces: list[Piece]) -> str:
    return orjson.dumps(pieces).decode()
