"""One health check of a node: 200 is a pass, anything else is not."""

from __future__ import annotations

from llmgw.core.config import Node
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.health import Failed, Passed
from llmgw.upstream.client import WatchClient, headers_for

MAX_BODY = 64 * 1024
PASSED = Passed()


async def probe(client: WatchClient, node: Node, *, within: float) -> Passed | Failed | None:
    """Ask the node's health path; the body is read up to 64 KiB and dropped.

    None: this process had no descriptor left to ask with, which says nothing of the node.
    """
    target = node.health_path or "/health"
    try:
        reply = await client.get(
            node.url, target, headers_for(node), within=within, max_bytes=MAX_BODY
        )
    except UpstreamError as fault:
        if fault.kind is FaultKind.EXHAUSTED:
            return None
        return Failed(connection=fault.kind in (FaultKind.CONNECT, FaultKind.LOST))
    return PASSED if reply.status == 200 else Failed(connection=False)
