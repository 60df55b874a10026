"""The handlers of the inference routes: one short pipeline for all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from llmgw.core.headers import refuse_loop
from llmgw.core.policy import Principal, admit, token_of
from llmgw.core.routes import ROUTES, Route
from llmgw.core.types import Headers
from llmgw.core.wire import parse_call
from llmgw.runtime.journey import Stage
from llmgw.web.body import read_body
from llmgw.web.incoming import Handler, Incoming
from llmgw.web.ports import Gateway
from llmgw.web.table import Page


def inference_pages(
    gateway: Gateway, upgrades: Mapping[str, Handler] | None = None
) -> tuple[Page, ...]:
    """A page for each route; `upgrades` are the GET handlers of paths that take a websocket."""
    return tuple(
        Page(
            route.path,
            {route.method: inference_handler(gateway, route)}
            | ({"GET": upgrades[route.path]} if upgrades and route.path in upgrades else {}),
            route.dialect,
        )
        for route in ROUTES
    )


def inference_handler(gateway: Gateway, route: Route) -> Handler:
    async def handle(incoming: Incoming) -> None:
        config = gateway.config  # one snapshot: a reload must not split a request
        headers = incoming.headers
        principal = authenticate(gateway, incoming, headers)
        refuse_loop(headers, instance=gateway.instance)
        body = await read_body(incoming, limit=config.gateway.max_request_body_bytes)
        began = time.perf_counter()
        call = parse_call(
            route,
            target=route.path + incoming.query,
            headers=headers,
            body=body,
            models=config.models,
            request_id=incoming.request_id,
        )
        incoming.model = call.model
        admit(principal, call)
        incoming.journey.spent(Stage.PARSE, began)
        await gateway.serve(call, principal, incoming.downstream, journey=incoming.journey)

    return handle


def authenticate(gateway: Gateway, incoming: Incoming, headers: Headers) -> Principal:
    """Raises `AuthenticationFailed`, before a byte of the body is asked for."""
    principal = gateway.keyring.authenticate(token_of(headers), now=time.time())
    incoming.key = principal.name
    return principal
