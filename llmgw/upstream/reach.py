"""How small questions get a connection: to an address without TLS the cheap way, else as requests.

Nothing needs TCP's own keepalive here, or a second address: a question has seconds, and an idle
connection no more of them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.address import connect, connect_fault
from llmgw.upstream.names import Names, is_numeric

P = TypeVar("P", bound=asyncio.BaseProtocol)


async def reach(
    url: BaseUrl,
    factory: Callable[[], P],
    names: Names,
    *,
    within: float,
    tls: ssl.SSLContext | None = None,
) -> P:
    """Connect a new protocol; raises `UpstreamError` (CONNECT, EXHAUSTED) alone."""
    try:
        if url.scheme == "http" and is_numeric(url.host):
            return await _directly(url, factory, within)
        return await connect(url, factory, within=within, tls=tls, resolve=names.resolve)
    except UpstreamError as fault:
        if fault.kind is FaultKind.CONNECT:
            raise UpstreamError(fault.kind, f"no connection: {fault.detail}") from None
        raise


async def _directly(url: BaseUrl, factory: Callable[[], P], within: float) -> P:
    """A third of the cost: of a thousand nodes that are away each is tried again and again."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within):
            _, protocol = await loop.create_connection(factory, url.host, url.port)
            return protocol
    except (OSError, RuntimeError) as error:  # uvloop has RuntimeErrors of its own here
        raise connect_fault(error) from None
