"""The one door to everything below `/admin`: who may come in, and what answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from llmgw.core.config import AdminUser
from llmgw.core.errors import MethodNotAllowed, NotFound
from llmgw.web.admin import login
from llmgw.web.admin.assets import answer_asset
from llmgw.web.admin.desk import Desk
from llmgw.web.admin.live import Live
from llmgw.web.admin.operators import Operators
from llmgw.web.admin.ports import Book, Gateway, Spawn
from llmgw.web.admin.rendering import Part, render, render_parts
from llmgw.web.admin.replies import html, json, see_other
from llmgw.web.admin.views import VIEWS, View, panel_of, part_of_panel, wish_of
from llmgw.web.incoming import Incoming
from llmgw.web.table import Page

ROOT: Final = "/admin"


def admin_pages(
    gateway: Gateway, book: Book | None, spawn: Spawn, *, secret: bytes
) -> tuple[Page, ...]:
    """Always in the table, so that a reload can name the first operator; without any of them
    nothing is there. `book` None: there is no database.
    """
    operators = Operators(gateway, secret)
    desk = Desk(gateway, book, spawn)
    door = Door(gateway, operators, desk, Live(gateway, desk, operators.of_cookie))
    return (Page(ROOT, {"GET": door.get, "POST": door.post}, takes_tail=True),)


class Door:
    """Answers by what follows `/admin/`."""

    def __init__(self, gateway: Gateway, operators: Operators, desk: Desk, live: Live) -> None:
        self._gateway = gateway
        self._operators = operators
        self._desk = desk
        self._live = live

    async def get(self, incoming: Incoming) -> web.StreamResponse:
        self._expect_operators()
        first, _, rest = incoming.tail.strip("/").partition("/")
        match first:
            case "static":
                return answer_asset(incoming, rest)
            case "login" if not rest:
                return login.show_login(self._operators, incoming)
            case "api":
                return await self._api(incoming, rest)
            case _:
                return await self._inside(incoming, first, rest)

    async def post(self, incoming: Incoming) -> web.StreamResponse:
        self._expect_operators()
        match incoming.tail.strip("/"):
            case "login":
                return await login.log_in(self._operators, incoming)
            case "logout":
                return await login.log_out(self._operators, incoming)
            case _:
                raise MethodNotAllowed(
                    "there is nothing to change here", headers=(("allow", "GET, HEAD"),)
                )

    def _expect_operators(self) -> None:
        if not self._operators.are_any:
            raise NotFound("unknown URL")

    async def _api(self, incoming: Incoming, rest: str) -> web.StreamResponse:
        operator = self._operators.of_api(incoming)
        wish = wish_of(self._gateway.config, operator, incoming.query)
        if rest == "routing":
            panel = await panel_of(self._desk, wish)
            if panel is None:
                raise NotFound("there is no such assignment", param="routing")
            return json(panel)
        view = VIEWS.get(rest)
        if view is None:
            raise NotFound(f"unknown URL; there are {', '.join((*VIEWS, 'routing'))}")
        return json(await view.document(self._desk, wish))

    async def _inside(self, incoming: Incoming, first: str, rest: str) -> web.StreamResponse:
        operator = self._operators.of_cookie(incoming)
        if operator is None:
            return login.ask_to_log_in(incoming, incoming.tail)
        if first == "live" and (view := VIEWS.get(rest)):
            return await self._live.answer(incoming, view)
        if not first:
            return see_other(login.FIRST_PAGE)
        if first == "panel" and not rest:
            return await self._panel(incoming, operator)
        view = None if rest else VIEWS.get(first)
        return await self._page(incoming, operator, view)

    async def _panel(self, incoming: Incoming, operator: AdminUser) -> web.StreamResponse:
        wish = wish_of(self._gateway.config, operator, incoming.query)
        panel = await panel_of(self._desk, wish)
        if panel is None:
            raise NotFound("there is no such assignment", param="routing")
        (piece,) = await asyncio.to_thread(render_parts, [part_of_panel(panel)])
        return html(render("piece.html", piece=piece))

    async def _page(
        self, incoming: Incoming, operator: AdminUser, view: View | None
    ) -> web.StreamResponse:
        frame = self._frame(incoming, operator)
        if view is None:
            return html(render("missing.html", view=None, **frame), status=404)
        wish = wish_of(self._gateway.config, operator, incoming.query)
        parts = await view.parts(self._desk, wish)
        text = await asyncio.to_thread(_page_text, view, parts, {**frame, "pools": wish.pools})
        return html(text)

    def _frame(self, incoming: Incoming, operator: AdminUser) -> dict[str, object]:
        """What stands around every page."""
        return {
            "cluster": self._gateway.config.cluster.name,
            "operator": operator.name,
            "logout_token": login.logout_token(self._operators, incoming),
            "views": VIEWS.values(),
        }


def _page_text(view: View, parts: list[Part], frame: Mapping[str, object]) -> str:
    pieces = dict(zip((part.name for part in parts), render_parts(parts), strict=True))
    return render(f"{view.name}.html", view=view, pieces=pieces, **frame)
