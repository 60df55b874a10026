"""The routes of what lives at an upstream: responses and files, by the ids they have there."""

from __future__ import annotations

from collections.abc import Iterator

from llmgw.core.errors import GatewayError
from llmgw.core.headers import refuse_loop
from llmgw.core.pins import call_of_resource
from llmgw.core.routes import ID_ROUTES, Route
from llmgw.web.body import read_body
from llmgw.web.incoming import Handler, Incoming
from llmgw.web.inference import authenticate
from llmgw.web.ports import Gateway
from llmgw.web.table import Page

FILES = "/v1/files"


def resource_pages(gateway: Gateway) -> tuple[Page, ...]:
    return tuple(_pages(gateway))


def resource_handler(gateway: Gateway, route: Route) -> Handler:
    async def handle(incoming: Incoming) -> None:
        headers = incoming.headers
        principal = authenticate(gateway, incoming, headers)
        refuse_loop(headers, instance=gateway.instance)
        limit = gateway.config.gateway.max_request_body_bytes
        call = call_of_resource(
            route,
            incoming.tail,
            query=incoming.query,
            headers=headers,
            body=await read_body(incoming, limit=limit),
            request_id=incoming.request_id,
        )
        await gateway.serve(call, principal, incoming.downstream, journey=incoming.journey)

    return handle


def _pages(gateway: Gateway) -> Iterator[Page]:
    for path in dict.fromkeys(route.path for route in ID_ROUTES):
        routes = [route for route in ID_ROUTES if route.path == path]
        handlers = {one.method: resource_handler(gateway, one) for one in routes}
        if path == FILES:
            handlers["GET"] = _list_handler(gateway)
        yield Page(path, handlers, routes[0].dialect)


def _list_handler(gateway: Gateway) -> Handler:
    """Each upstream knows only its own files, and those of all its keys."""

    async def handle(incoming: Incoming) -> None:
        authenticate(gateway, incoming, incoming.headers)
        raise GatewayError(
            "files can't be listed here; keep the ids of those that you upload",
            status=501,
            code="not_implemented",
            type="invalid_request_error",
        )

    return handle
