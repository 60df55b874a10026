"""One reading of a node's own metrics: how busy its engine is, and its GPUs."""

from __future__ import annotations

from llmgw.core.config import BaseUrl, Node
from llmgw.core.errors import UpstreamError
from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.core.loads import parse_gpus, parse_load
from llmgw.core.types import Headers
from llmgw.upstream.client import OURS, WatchClient, address, headers_for

PATH = "/metrics"
MAX_BODY = 4 * 1024 * 1024
TIMEOUT = 5.0


async def scrape_load(client: WatchClient, node: Node) -> EngineLoad | None:
    """None where the engine has no metrics, or none that are known, or did not answer."""
    text = await _text(client, address(node.url, PATH), headers_for(node))
    return None if text is None else parse_load(text)


async def scrape_gpus(client: WatchClient, node: Node) -> tuple[Gpu, ...]:
    """From the exporter on the node's `metrics_port`, which is not the engine and gets no key."""
    if node.metrics_port is None:
        return ()
    exporter = BaseUrl("http", node.url.host, node.metrics_port)
    text = await _text(client, address(exporter, PATH), OURS)
    return () if text is None else parse_gpus(text)


async def _text(client: WatchClient, url: str, headers: Headers) -> str | None:
    try:
        reply = await client.get(url, headers, within=TIMEOUT, max_bytes=MAX_BODY)
    except UpstreamError:
        return None
    if reply.status != 200 or not reply.is_whole:
        return None
    return reply.body.decode("utf-8", "replace")
