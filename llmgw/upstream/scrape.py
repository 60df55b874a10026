"""One reading of a node's own metrics: how busy its engine is, and its GPUs."""

from __future__ import annotations

from llmgw.core.config import BaseUrl, Node
from llmgw.core.errors import UpstreamError
from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.core.loads import parse_gpus, parse_load
from llmgw.core.types import Headers
from llmgw.upstream.client import OURS, WatchClient, headers_for, parsed

PATH = "/metrics"
MAX_BODY = 4 * 1024 * 1024
TIMEOUT = 5.0


async def scrape_load(client: WatchClient, node: Node) -> EngineLoad | None:
    """None where the engine has no metrics, or none that are known, or did not answer."""
    page = await _page(client, node.url, headers_for(node))
    return None if page is None else await parsed(parse_load, page)


async def scrape_gpus(client: WatchClient, node: Node) -> tuple[Gpu, ...]:
    """From the exporter on the node's `metrics_port`, which is not the engine and gets no key."""
    if node.metrics_port is None:
        return ()
    exporter = BaseUrl("http", node.url.host, node.metrics_port)
    page = await _page(client, exporter, OURS)
    return () if page is None else await parsed(parse_gpus, page)


async def _page(client: WatchClient, url: BaseUrl, headers: Headers) -> bytes | None:
    try:
        reply = await client.get(url, PATH, headers, within=TIMEOUT, max_bytes=MAX_BODY)
    except UpstreamError:
        return None
    return reply.body if reply.status == 200 and reply.is_whole else None
