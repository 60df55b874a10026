"""The listing loop: asks every upstream what it serves, and writes its discovery half."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Protocol

from llmgw.core.config import Account, Config, Upstream
from llmgw.core.discovery import Listed, ListingFailed, Recheck
from llmgw.core.fleet import Place, place_of
from llmgw.core.listing import Page, Unreadable
from llmgw.observe.metrics import MODEL_DISCOVERY, child
from llmgw.runtime.listing_log import ListingLog
from llmgw.runtime.registry import Registry
from llmgw.runtime.rounds import Rounds
from llmgw.runtime.tasks import Supervisor

RECHECK_WITHIN = 2.0


class ListModels(Protocol):
    def __call__(
        self, upstream: Upstream, /, *, within: float, max_bytes: int
    ) -> Awaitable[Page | Unreadable | None]:
        """One listing, read or given up `within` so many seconds; None: nobody was asked, for a
        reason that lies with this gateway."""


@dataclass(frozen=True, slots=True)
class _Recheck:
    began: float
    task: asyncio.Task[Page | Unreadable | None]


class DiscoveryLoop:
    """Lists nodes at `gateway.health_interval`, accounts at `discovery.account_interval`."""

    def __init__(
        self, registry: Registry, supervisor: Supervisor, list_models: ListModels
    ) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._list_models = list_models
        self._log = ListingLog()
        self._rounds = Rounds[Upstream](
            "listing of", self._list, supervisor, clock=registry.clock, shift=1 / 3
        )
        self._rechecks: dict[Place, _Recheck] = {}
        self._unlisted = {place_of(node) for node in registry.config.nodes}
        self._first_round = asyncio.Event()

    def start(self) -> None:
        self.reload()
        self._supervisor.loop("discovery", self._rounds.run)

    def reload(self) -> None:
        """Follow the registry's configuration: new upstreams are listed at once."""
        config = self._registry.config
        self._rounds.watch(_intervals(config))
        self._log.keep_only(config)
        places = {place_of(one) for one in config.upstreams}
        self._rechecks = {one: what for one, what in self._rechecks.items() if one in places}
        self._unlisted &= places
        self._look_whether_round_is_done()

    async def first_round(self) -> None:
        """Wait until every node has been listed once, whatever came of it."""
        await self._first_round.wait()

    async def recheck(self, upstream: Upstream, model: str) -> Recheck:
        """Whether a node's list still has a model that the node just answered 404 for.

        Asked once for all who want to know, and at most once in a health interval; in between
        the last answer speaks. A failed re-check is no failed listing: it had less time.
        """
        asked = self._rechecks.get(place_of(upstream))
        if asked is None or self._is_stale(asked):
            asked = self._ask_again(upstream)
        page = await asyncio.shield(asked.task)  # others wait for it too
        if not isinstance(page, Page):
            return Recheck.UNKNOWN
        return Recheck.STILL_LISTED if model in page.names else Recheck.GONE

    def _is_stale(self, asked: _Recheck) -> bool:
        age = self._registry.clock() - asked.began
        return asked.task.done() and age >= self._registry.config.gateway.health_interval

    def _ask_again(self, upstream: Upstream) -> _Recheck:
        task = self._supervisor.spawn(f"re-check of {upstream.name}", self._read_again(upstream))
        asked = self._rechecks[place_of(upstream)] = _Recheck(self._registry.clock(), task)
        return asked

    async def _read_again(self, upstream: Upstream) -> Page | Unreadable | None:
        max_bytes = self._registry.config.discovery.max_bytes
        page = await self._list_models(upstream, within=RECHECK_WITHIN, max_bytes=max_bytes)
        if isinstance(page, Page):
            self._land(upstream, page)
        return page

    async def _list(self, upstream: Upstream) -> None:
        limits = self._registry.config.discovery
        within = limits.account_timeout if isinstance(upstream, Account) else limits.timeout
        try:
            page = await self._list_models(upstream, within=within, max_bytes=limits.max_bytes)
            if page is not None:
                self._land(upstream, page)
        finally:
            self._unlisted.discard(place_of(upstream))
            self._look_whether_round_is_done()

    def _land(self, upstream: Upstream, page: Page | Unreadable) -> None:
        event = _event_of(page, self._registry.clock())
        step = self._registry.discovery_event(upstream, event)
        if step is not None:  # else it left with a reload meanwhile
            child(MODEL_DISCOVERY, step.upstream.name, _result_of(event)).inc()
            self._log.changed(step, self._registry.config.models)

    def _look_whether_round_is_done(self) -> None:
        if not self._unlisted:
            self._first_round.set()


def _intervals(config: Config) -> Iterator[tuple[Upstream, float]]:
    yield from ((node, config.gateway.health_interval) for node in config.nodes)
    yield from ((account, config.discovery.account_interval) for account in config.accounts)


def _event_of(page: Page | Unreadable, now: float) -> Listed | ListingFailed:
    if isinstance(page, Unreadable):
        return ListingFailed(page.error)
    return Listed(page.names, now, page.max_lens)


def _result_of(event: Listed | ListingFailed) -> str:
    if isinstance(event, ListingFailed):
        return "error"
    return "success" if event.names else "empty"
