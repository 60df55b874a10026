"""One listing of an upstream's models: `GET /v1/models`, page by page where a provider has any."""

from __future__ import annotations

import asyncio
from typing import TypeGuard
from urllib.parse import quote

from llmgw.core.config import Account, Upstream
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.fleet import place_of
from llmgw.core.listing import Page, Unreadable, parse_listing
from llmgw.core.types import Headers
from llmgw.upstream.client import WatchClient, headers_for, parsed
from llmgw.upstream.known_lists import KnownLists
from llmgw.upstream.reply import Reply

PATH = "/v1/models"
MAX_PAGES = 10
PAGE_SIZE = 1000
ANTHROPIC_VERSION = ("anthropic-version", "2023-06-01")


async def list_models(
    client: WatchClient,
    known: KnownLists,
    upstream: Upstream,
    /,
    *,
    within: float,
    max_bytes: int,
) -> Page | Unreadable | None:
    """What the upstream lists, all pages in time; half a list is none.

    None: this process had no descriptor left to ask with, which says nothing of the upstream.
    """
    try:
        if _is_paged(upstream):
            return await _all_pages(client, upstream, within=within, max_bytes=max_bytes)
        reply = await client.get(
            upstream.url, PATH, headers_for(upstream), within=within, max_bytes=max_bytes
        )
        return _flaw(reply, max_bytes) or await _page(known, upstream, reply.body)
    except UpstreamError as fault:
        return None if fault.kind is FaultKind.EXHAUSTED else Unreadable(fault.detail)


def _is_paged(upstream: Upstream) -> TypeGuard[Account]:
    return isinstance(upstream, Account) and upstream.auth == "x-api-key"


def _flaw(reply: Reply, max_bytes: int) -> Unreadable | None:
    if reply.status != 200:
        return Unreadable(f"status {reply.status}")
    return None if reply.is_whole else Unreadable(f"the list is longer than {max_bytes} bytes")


async def _page(known: KnownLists, upstream: Upstream, body: bytes) -> Page | Unreadable:
    place = place_of(upstream)
    page = known.find(place, body)
    if page is not None:
        return page
    read = await parsed(parse_listing, body)
    return read if isinstance(read, Unreadable) else known.keep(place, body, read)


async def _all_pages(
    client: WatchClient, account: Account, *, within: float, max_bytes: int
) -> Page | Unreadable:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    headers = _headers(account)
    pages: list[Page] = []
    while True:
        target, left = _target(pages), deadline - loop.time()
        reply = await client.get(account.url, target, headers, within=left, max_bytes=max_bytes)
        flaw = _flaw(reply, max_bytes)
        page = flaw if flaw is not None else await parsed(parse_listing, reply.body)
        if isinstance(page, Unreadable):
            return page
        pages.append(page)
        if page.after is None or len(pages) == MAX_PAGES:
            return _merged(pages)


def _headers(account: Account) -> Headers:
    headers = headers_for(account)
    if any(name == ANTHROPIC_VERSION[0] for name, _ in headers):
        return headers
    return (*headers, ANTHROPIC_VERSION)


def _target(before: list[Page]) -> str:
    target = f"{PATH}?limit={PAGE_SIZE}"
    if before and before[-1].after is not None:
        target += f"&after_id={quote(before[-1].after, safe='')}"
    return target


def _merged(pages: list[Page]) -> Page:
    if len(pages) == 1:
        return pages[0]
    names = dict.fromkeys(name for page in pages for name in page.names)
    sizes = {name: size for page in reversed(pages) for name, size in page.max_lens}
    return Page(tuple(names), tuple((name, sizes[name]) for name in names if name in sizes))
