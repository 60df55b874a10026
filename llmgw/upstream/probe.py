"""One health check of a node: 200 is a pass, anything else is not."""

from __future__ import annotations

from llmgw.core.config import Node
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.health import Failed, Passed
from llmgw.upstream.client import WatchClient, address, headers_for

MAX_BODY = 64 * 1024


async def probe(client: WatchClient, node: Node, *, within: float) -> Passed | Failed:
    """Ask the node's health path; the body is read up to 64 KiB and dropped."""
    url = address(node.url, node.health_path or "/health")
    try:
        reply = await client.get(url, headers_for(node), within=within, max_bytes=MAX_BODY)
    except UpstreamError as fault:
        return Failed(connection=fault.kind in (FaultKind.CONNECT, FaultKind.LOST))
    return Passed() if reply.status == 200 else Failed(connection=False)
