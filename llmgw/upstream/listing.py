"""One listing of an upstream's models: `GET /v1/models`, page by page where a provider has any."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from llmgw.core.config import Account, Upstream
from llmgw.core.errors import UpstreamError
from llmgw.core.listing import Page, Unreadable, parse_listing
from llmgw.core.types import Headers
from llmgw.upstream.client import Reply, WatchClient, address, headers_for, parsed

PATH = "/v1/models"
MAX_PAGES = 10
PAGE_SIZE = 1000
ANTHROPIC_VERSION = ("anthropic-version", "2023-06-01")


async def list_models(
    client: WatchClient, upstream: Upstream, *, within: float, max_bytes: int
) -> Page | Unreadable:
    """What the upstream lists, all pages in time; half a list is none."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    headers = _headers(upstream)
    pages: list[Page] = []
    while True:
        url = address(upstream.url, _target(upstream, pages))
        left = deadline - loop.time()
        try:
            reply = await client.get(url, headers, within=left, max_bytes=max_bytes)
        except UpstreamError as fault:
            return Unreadable(fault.detail)
        page = await _page(reply, max_bytes)
        if isinstance(page, Unreadable):
            return page
        pages.append(page)
        if not _is_paged(upstream) or page.after is None or len(pages) == MAX_PAGES:
            return _merged(pages)


def _is_paged(upstream: Upstream) -> bool:
    return isinstance(upstream, Account) and upstream.auth == "x-api-key"


def _headers(upstream: Upstream) -> Headers:
    headers = headers_for(upstream)
    if not _is_paged(upstream) or any(name == ANTHROPIC_VERSION[0] for name, _ in headers):
        return headers
    return (*headers, ANTHROPIC_VERSION)


def _target(upstream: Upstream, before: list[Page]) -> str:
    if not _is_paged(upstream):
        return PATH
    target = f"{PATH}?limit={PAGE_SIZE}"
    if before and before[-1].after is not None:
        target += f"&after_id={quote(before[-1].after, safe='')}"
    return target


async def _page(reply: Reply, max_bytes: int) -> Page | Unreadable:
    if reply.status != 200:
        return Unreadable(f"status {reply.status}")
    if not reply.is_whole:
        return Unreadable(f"the list is longer than {max_bytes} bytes")
    return await parsed(parse_listing, reply.body)


def _merged(pages: list[Page]) -> Page:
    if len(pages) == 1:
        return pages[0]
    names = dict.fromkeys(name for page in pages for name in page.names)
    sizes = {name: size for page in reversed(pages) for name, size in page.max_lens}
    return Page(tuple(names), tuple((name, sizes[name]) for name in names if name in sizes))
