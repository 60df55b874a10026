"""The admin door in front of a gateway that has no upstreams to ask."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlencode

import pytest

from llmgw.runtime.tasks import Supervisor
from llmgw.web.admin.pages import admin_pages
from llmgw.web.pages import public_pages
from tests.fakes.admin import PASSWORD, AdminGateway, FakeBook, gateway_of, two_pools
from tests.fakes.raw_client import Reply, request
from tests.web.conftest import Door, opened

SECRET = b"s" * 32
FORM = ("Content-Type", "application/x-www-form-urlencoded")
Lines = Sequence[tuple[str, str]]


class AdminDoor(Door):
    """Keeps cookies as a browser does; `replies` are whole."""

    gateway: AdminGateway

    def __init__(self, gateway: AdminGateway, book: FakeBook | None, supervisor) -> None:
        self.book = book
        self.cookies: dict[str, str] = {}
        pages = admin_pages(gateway, book, supervisor.spawn, secret=SECRET)
        super().__init__(gateway, public_pages(gateway, pages))

    async def get(self, path: str, *, headers: Lines = (), method: str = "GET") -> Reply:
        return await self._ask(request(method, path, headers=self._with_cookies(headers)), method)

    async def post(self, path: str, *, headers: Lines = (), **fields: str) -> Reply:
        body = urlencode(fields).encode()
        lines = self._with_cookies((FORM, *headers))
        return await self._ask(request("POST", path, headers=lines, body=body))

    async def form(self, *, query: str = "") -> dict[str, str]:
        """The login form as a browser would send it."""
        page = await self.get(f"/admin/login{query}")
        assert page.status == 200
        return hidden_fields(page)

    async def log_in(self, name: str = "ada", password: str = PASSWORD, **headers) -> Reply:
        fields = await self.form()
        return await self.post("/admin/login", **{**fields, "name": name, "password": password})

    def _with_cookies(self, headers: Lines) -> Lines:
        if not self.cookies:
            return headers
        return (*headers, ("Cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items())))

    async def _ask(self, data: bytes, method: str = "GET") -> Reply:
        client = await self.client()
        client.send(data)
        head = await client.reader.readuntil(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")[:-2]
        pairs = [line.split(": ", 1) for line in lines]
        headers = {name.lower(): value for name, value in pairs if name != "Set-Cookie"}
        self.set_cookies = {}
        for value in (value for name, value in pairs if name == "Set-Cookie"):
            self._take_cookie(value)
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        body = await client.reader.readexactly(length)
        return Reply(int(status.split(" ")[1]), headers, body, head)

    def _take_cookie(self, line: str) -> None:
        name, _, rest = line.partition("=")
        value, _, attributes = rest.partition("; ")
        self.set_cookies[name] = set(attributes.split("; "))
        self.cookies[name] = value.strip('"')
        if not self.cookies[name]:
            del self.cookies[name]


def hidden_fields(page: Reply) -> dict[str, str]:
    found = re.findall(rb'<input type="hidden" name="(\w+)" value="([^"]*)">', page.body)
    return {name.decode(): value.decode() for name, value in found}


@pytest.fixture
def gateway() -> AdminGateway:
    return gateway_of(two_pools(), "m1", "m2")


@pytest.fixture
def book() -> FakeBook | None:
    return FakeBook()


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    supervisor = Supervisor()
    yield supervisor
    await supervisor.stop()


@pytest.fixture
async def door(gateway, book, supervisor) -> AsyncIterator[AdminDoor]:
    async with opened(AdminDoor(gateway, book, supervisor)) as door:
        yield door
