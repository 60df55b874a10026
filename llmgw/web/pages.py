"""The few pages that say what this is and whether it is there, and the tables of both doors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import orjson

from llmgw import __version__
from llmgw.web.errors import JSON
from llmgw.web.health import health_handler
from llmgw.web.incoming import Handler, Incoming
from llmgw.web.inference import inference_pages
from llmgw.web.metrics import answer_metrics
from llmgw.web.models import model_page
from llmgw.web.ports import Gateway
from llmgw.web.resources import resource_pages
from llmgw.web.table import Page

ABOUT: Final = orjson.dumps({"name": "llmgw", "version": __version__})
ALIVE: Final = orjson.dumps({"status": "alive"})


def public_pages(
    gateway: Gateway, more: Iterable[Page] = (), *, upgrades: Mapping[str, Handler] | None = None
) -> tuple[Page, ...]:
    """All of `gateway.listen`; a page of `more` takes the place of ours with its path."""
    inference = inference_pages(gateway, upgrades)
    resources = resource_pages(gateway)
    return (*inference, *resources, model_page(gateway), *_status_pages(gateway), *more)


def metrics_pages(gateway: Gateway) -> tuple[Page, ...]:
    """All of `gateway.metrics_listen`, which is for the operator: nothing is held back here."""
    metrics = Page("/metrics", {"GET": answer_metrics})
    return (metrics, *_status_pages(gateway, always_details=True))


def _status_pages(gateway: Gateway, *, always_details: bool = False) -> tuple[Page, ...]:
    return (
        Page("/health", {"GET": health_handler(gateway, always_details=always_details)}),
        Page("/livez", {"GET": _answer_alive}),
        Page("/readyz", {"GET": _ready_handler(gateway)}),
        Page("/", {"GET": _answer_about}),
    )


async def _answer_about(incoming: Incoming) -> None:
    incoming.downstream.respond(200, (JSON,), ABOUT)


async def _answer_alive(incoming: Incoming) -> None:
    incoming.downstream.respond(200, (JSON,), ALIVE)


def _ready_handler(gateway: Gateway) -> Handler:
    """Dead nodes don't make it unready: another gateway would see the same nodes."""

    async def handle(incoming: Incoming) -> None:
        word = "draining" if gateway.draining else "ready" if gateway.ready else "starting"
        status = 200 if word == "ready" else 503
        incoming.downstream.respond(status, (JSON,), orjson.dumps({"status": word}))

    return handle
