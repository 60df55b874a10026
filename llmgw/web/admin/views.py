"""The three views, each as parts for a page and as a document for the API.

Both come from the same values, which are bounded by the operator's pools before anything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from llmgw.core.admin_routing import RoutingView, find_seat, routing_view
from llmgw.core.admin_seen import Sample, total_of
from llmgw.core.admin_usage import ModelUsage
from llmgw.core.admin_view import (
    CircuitView,
    PoolView,
    circuit_view,
    upstream_view,
    visible_pools,
)
from llmgw.core.config import AdminUser, Config
from llmgw.store.usage import PastRequest
from llmgw.web.admin.desk import Desk, Found, Pools
from llmgw.web.admin.rendering import Part

MOST_FIELDS: Final = 20

Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants to see what."""

    pools: Pools
    routing: str | None = None  # the assignment whose panel is open


@dataclass(frozen=True, slots=True)
class Summary:
    """All of an operator's assignments in a few numbers."""

    assignments: int
    troubled: int
    open_circuits: int
    total: Sample
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """What the *Routing* block opens; None: it was taken away meanwhile."""

    routing: RoutingView
    usage: Found[ModelUsage]


@dataclass(frozen=True, slots=True)
class View:
    """One page: its title, and how its parts and its document come about."""

    name: str
    title: str
    parts: Callable[[Desk, Wish], Awaitable[list[Part]]]
    document: Callable[[Desk, Wish], Awaitable[Document]]


def wish_of(config: Config, operator: AdminUser, query: str) -> Wish:
    return Wish(visible_pools(config, operator), field_of(query, "routing"))


def field_of(query: str, name: str) -> str | None:
    """The first of that name; None also where the query is none that a page of ours makes."""
    try:
        fields = parse_qs(query.removeprefix("?"), max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    return fields.get(name, [None])[0]


async def panel_of(desk: Desk, wish: Wish) -> Panel | None:
    """None: for this operator there is no such assignment."""
    seat = find_seat(wish.pools, wish.routing or "")
    if seat is None:
        return None
    pool, name = seat
    routing = routing_view(desk.look((pool,)), pool, name)
    if routing is None:
        return None
    return Panel(routing, await desk.usage((pool,)))


def part_of_panel(panel: Panel) -> Part:
    return Part(f"routing {panel.routing.assignment}", "panel.html", panel)


async def _upstream_parts(desk: Desk, wish: Wish) -> list[Part]:
    pools = upstream_view(desk.look(wish.pools), wish.pools)
    panel = await panel_of(desk, wish)
    parts = [Part("summary", "summary.html", _summary(pools))]
    for pool in pools:
        parts += [Part(f"assignment {one.id}", "assignment.html", one) for one in pool.assignments]
    if panel is not None:
        parts.append(part_of_panel(panel))
    parts.append(Part("usage", "usage.html", await desk.usage(wish.pools)))
    return parts


async def _upstream_document(desk: Desk, wish: Wish) -> Document:
    pools = upstream_view(desk.look(wish.pools), wish.pools)
    return {"pools": pools, "usage": await desk.usage(wish.pools)}


async def _request_parts(desk: Desk, wish: Wish) -> list[Part]:
    return [Part("requests", "request_list.html", await desk.requests(wish.pools))]


async def _request_document(desk: Desk, wish: Wish) -> Document:
    found: Found[PastRequest] = await desk.requests(wish.pools)
    return {"source": found.source, "requests": found.rows}


async def _circuit_parts(desk: Desk, wish: Wish) -> list[Part]:
    return [Part("circuits", "circuit_list.html", _circuits(desk, wish))]


async def _circuit_document(desk: Desk, wish: Wish) -> Document:
    return {"circuits": _circuits(desk, wish)}


def _circuits(desk: Desk, wish: Wish) -> tuple[CircuitView, ...]:
    return circuit_view(desk.look(wish.pools), wish.pools)


def _summary(pools: tuple[PoolView, ...]) -> Summary:
    seats = [one for pool in pools for one in pool.assignments]
    columns = zip(*(one.samples for one in seats), strict=True)
    samples = tuple(total_of(column) for column in columns)
    return Summary(
        assignments=len(seats),
        troubled=sum(pool.troubled for pool in pools),
        open_circuits=sum(one.circuits.open + one.circuits.half_open for one in seats),
        total=total_of(samples),
        samples=samples,
    )


VIEWS: Final = {
    view.name: view
    for view in (
        View("upstreams", "Upstreams", _upstream_parts, _upstream_document),
        View("requests", "Requests", _request_parts, _request_document),
        View("circuits", "Circuits", _circuit_parts, _circuit_document),
    )
}
