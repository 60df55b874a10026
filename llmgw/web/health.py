"""`/health`: what the gateway sees of its nodes. Always 200: it is about them, not itself."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import orjson

from llmgw import __version__
from llmgw.core.config import Node
from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.fleet import Gpu, UpstreamState
from llmgw.core.health import STREAK_FOR, Status
from llmgw.runtime.standing import ConfigStatus
from llmgw.web.errors import JSON
from llmgw.web.incoming import Handler, Incoming
from llmgw.web.ports import Gateway

Document = dict[str, object]
LISTED = (State.KNOWN, State.KNOWN_EMPTY)


def health_handler(gateway: Gateway, *, always_details: bool = False) -> Handler:
    async def handle(incoming: Incoming) -> None:
        details = always_details or gateway.config.gateway.health_details
        document = health_document(gateway, now=time.monotonic(), details=details)
        incoming.downstream.respond(200, (JSON,), orjson.dumps(document))

    return handle


def health_document(gateway: Gateway, *, now: float, details: bool) -> Document:
    """Discovery, circuits and the catalog never move `status`, `nodes` and `healthy`."""
    threshold = gateway.config.gateway.request_overload_threshold
    nodes = [
        (state.upstream, state, state.health.status(now, overload_threshold=threshold))
        for state in gateway.registry.fleet().states.values()
        if isinstance(state.upstream, Node)
    ]
    healthy = sum(status is Status.HEALTHY for _, _, status in nodes)
    document: Document = {
        "status": _summary(healthy, len(nodes)),
        "nodes": len(nodes),
        "healthy": healthy,
        "models_ok": sum(state.discovery.state in LISTED for _, state, _ in nodes),
        "database": gateway.database_state,
        "version": __version__,
        "config": _config(gateway.config_status),
    }
    if details:
        drained = gateway.board.draining()
        document["details"] = [
            {**_detail(*one, now), "draining": one[0].drain or one[0].name in drained}
            for one in nodes
        ]
    return document


def _summary(healthy: int, nodes: int) -> str:
    if healthy == nodes:
        return "ok"
    return "degraded" if healthy else "error"


def _config(status: ConfigStatus) -> Document:
    return {
        "loaded_at": datetime.fromtimestamp(status.loaded_at, UTC).isoformat(),
        "digest": status.digest,
        "last_error": status.last_error,
    }


def _detail(node: Node, state: UpstreamState, status: Status, now: float) -> Document:
    health = state.health
    return {
        "ip": node.url.host,
        "name": node.name,
        "url": str(node.url),
        "status": status,
        "req_streak": health.streak if now < health.streak_at + STREAK_FOR else 0,
        "ring": node.ring,
        "gpus": [_gpu(gpu) for gpu in state.gpus],
        "models": _models(state.discovery, now),
    }


def _gpu(gpu: Gpu) -> Document:
    return {
        "gpu": gpu.gpu,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
        "utilization_percent": gpu.utilization_percent,
        "temperature_celsius": gpu.temperature_celsius,
    }


def _models(discovery: ModelDiscovery, now: float) -> Document:
    listed_at = discovery.listed_at
    return {
        "state": discovery.state,
        "names": discovery.names,
        "age_seconds": None if listed_at is None else round(max(0.0, now - listed_at), 3),
        "fails": discovery.fails,
        "last_error": discovery.last_error,
    }
