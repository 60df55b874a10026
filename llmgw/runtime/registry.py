"""The sole holder of the live fleet: events go in, values that never change come out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from llmgw.core import discovery, health
from llmgw.core.config import Config, Node, Upstream
from llmgw.core.discovery import Listed, ListingFailed, ModelDiscovery
from llmgw.core.fleet import EngineLoad, Fleet, Gpu, UpstreamState, place_of
from llmgw.core.health import Failed, HealthEvent, NodeHealth, Passed
from llmgw.core.types import UpstreamName

Clock = Callable[[], float]
Leave = Callable[[], None]
Remove = Callable[[], None]


@dataclass(frozen=True, slots=True)
class HealthStep:
    """What one event made of a node's health."""

    before: NodeHealth
    after: NodeHealth


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """What one event made of an upstream's list; `upstream` as it is configured now."""

    upstream: Upstream
    before: ModelDiscovery
    after: ModelDiscovery


class Watcher(Protocol):
    """One attempt that waits for its node's first byte."""

    def tell(self) -> None:
        """The node is dead."""


@dataclass(eq=False, slots=True)
class Entry:
    """One upstream's live state; stays the same object over a reload that keeps its URL."""

    state: UpstreamState
    in_flight: int = 0
    watchers: set[Watcher] = field(default_factory=set)

    def leave(self) -> None:
        self.in_flight -= 1


class _Watcher:
    __slots__ = ("_entry", "_told")

    def __init__(self, entry: Entry, told: Callable[[], None]) -> None:
        self._entry = entry
        self._told = told

    def tell(self) -> None:
        self._told()

    def remove(self) -> None:
        self._entry.watchers.discard(self)


class Registry:
    """Live state of every upstream.

    Methods take the upstream as the caller's configuration knew it. An event for one that is
    gone since, or whose URL changed, lands nowhere and answers None; one for a node that was
    only renamed lands on it.
    """

    def __init__(self, config: Config, *, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._config = config
        self._version = 1
        self._listings = 1
        self._entries = {one.name: Entry(UpstreamState(one)) for one in config.upstreams}
        self._places = {place_of(entry.state.upstream): entry for entry in self._entries.values()}
        self._fleet: Fleet | None = None

    @property
    def config(self) -> Config:
        return self._config

    @property
    def version(self) -> int:
        """That of the fleet, without making one: it grows when what routing looks at changes."""
        return self._version

    @property
    def listings(self) -> int:
        """The same for what upstreams list alone: health says nothing of what a pool offers."""
        return self._listings

    def fleet(self) -> Fleet:
        """One reading of all upstreams; the same value until something changed."""
        if self._fleet is None:
            states = {name: entry.state for name, entry in self._entries.items()}
            self._fleet = Fleet(self._version, MappingProxyType(states))
        return self._fleet

    def states(self) -> tuple[UpstreamState, ...]:
        """The states of this moment; unlike the rest this may be called from another thread."""
        return tuple(entry.state for entry in self._entries.values())

    def state(self, upstream: Upstream) -> UpstreamState | None:
        entry = self._places.get(place_of(upstream))
        return None if entry is None else entry.state

    def health_event(self, upstream: Upstream, event: HealthEvent) -> HealthStep | None:
        """Nodes only: an account is never probed, and its failures are its circuit's."""
        entry = self._places.get(place_of(upstream))
        if entry is None or not isinstance(entry.state.upstream, Node):
            return None
        if _is_unchecked(entry.state.upstream, event):
            return None
        before = entry.state.health
        threshold = self._config.gateway.health_fail_threshold
        after = health.advance(before, event, fail_threshold=threshold)
        if after is before:  # as most checks leave it
            return HealthStep(before, after)
        self._version += self._routed_by(before) != self._routed_by(after)
        self._put(entry, replace(entry.state, health=after))
        if after.is_unreachable and not before.is_unreachable:
            _tell(entry)
        return HealthStep(before, after)

    def discovery_event(
        self, upstream: Upstream, event: Listed | ListingFailed
    ) -> DiscoveryStep | None:
        entry = self._places.get(place_of(upstream))
        if entry is None:
            return None
        before = entry.state.discovery
        after = discovery.advance(
            before,
            event,
            fail_threshold=self._config.gateway.health_fail_threshold,
            is_account=entry.state.is_account,
        )
        if _offers(after) != _offers(before):
            self._version += 1
            self._listings += 1
        seen = entry.state
        self._put(entry, UpstreamState(seen.upstream, seen.health, after, seen.load, seen.gpus))
        return DiscoveryStep(seen.upstream, before, after)

    def set_load(self, upstream: Upstream, load: EngineLoad | None) -> None:
        """What the engine's metrics say; None: unknown, our own in-flight counts must do."""
        entry = self._places.get(place_of(upstream))
        if entry is not None and load != entry.state.load:
            self._put(entry, replace(entry.state, load=load))

    def set_gpus(self, upstream: Upstream, gpus: tuple[Gpu, ...]) -> None:
        entry = self._places.get(place_of(upstream))
        if entry is not None and gpus != entry.state.gpus:
            self._put(entry, replace(entry.state, gpus=gpus))

    def entry(self, upstream: Upstream) -> Entry | None:
        """For whoever counts itself in and out, and watches, without a look-up each time."""
        return self._places.get(place_of(upstream))

    def enter(self, upstream: Upstream) -> Leave:
        """Count one attempt in; the caller calls the answer exactly once when it ends."""
        entry = self._places.get(place_of(upstream))
        if entry is None:
            return _nowhere
        entry.in_flight += 1
        return entry.leave  # of the entry, not of the name: a reload may come in between

    def in_flight(self, upstream: Upstream) -> int:
        entry = self._places.get(place_of(upstream))
        return 0 if entry is None else entry.in_flight

    def load(self, upstream: Upstream) -> float:
        """How busy it is: by its engine's word, and never less than what is ours there."""
        entry = self._places.get(place_of(upstream))
        if entry is None:
            return 0.0
        engine = entry.state.load
        theirs = 0.0 if engine is None else engine.running + engine.waiting
        return max(theirs, entry.in_flight)

    def on_unreachable(self, upstream: Upstream, callback: Callable[[], None]) -> Remove:
        """Have `callback` called when the node turns dead by failures of the connection alone.

        Attempts on it that have had no byte can only wait for TCP to give up.
        """
        entry = self._places.get(place_of(upstream))
        if entry is None:
            return _nowhere
        watcher = _Watcher(entry, callback)
        entry.watchers.add(watcher)
        return watcher.remove

    def reload(self, config: Config) -> None:
        """Take a new configuration; upstreams that stay keep their whole state."""
        kept = _kept(self._entries, config)
        entries = {
            one.name: kept.get(one.name) or Entry(UpstreamState(one)) for one in config.upstreams
        }
        for one in config.upstreams:
            entry = entries[one.name]
            entry.state = _carried(entry.state, one)
        alive = set(entries.values())
        former = {place: entry for place, entry in self._places.items() if entry in alive}
        self._places = former | {place_of(one): entries[one.name] for one in config.upstreams}
        self._entries = entries
        self._config = config
        self._version += 1
        self._listings += 1
        self._fleet = None

    def _put(self, entry: Entry, state: UpstreamState) -> None:
        entry.state = state
        self._fleet = None

    def _routed_by(self, seen: NodeHealth) -> tuple[object, ...]:
        """What eligibility looks at. Load is not among it: it moves all the time, and only the
        order of candidates asks for it, live.
        """
        threshold = self._config.gateway.request_overload_threshold
        return seen.checked, seen.skip_until, seen.overloaded_until(threshold)


def _is_unchecked(node: Node, event: HealthEvent) -> bool:
    """`health = "off"`: a check that began before a reload said so proves nothing any more."""
    return node.health_path is None and isinstance(event, Passed | Failed)


def _carried(state: UpstreamState, upstream: Upstream) -> UpstreamState:
    """The state under another configuration. Without checks nothing could raise a dead node."""
    seen = state.health
    if isinstance(upstream, Node) and upstream.health_path is None:
        seen = health.advance(seen, Passed(), fail_threshold=1)
    return UpstreamState(upstream, seen, state.discovery, state.load, state.gpus)


def _offers(listed: ModelDiscovery) -> tuple[object, ...]:
    """What eligibility and the catalog look at. A node's list is mostly the object that it was,
    so that it is compared by identity.
    """
    return listed.state, listed.names, listed.max_lens


def _kept(entries: dict[UpstreamName, Entry], config: Config) -> dict[UpstreamName, Entry]:
    """Which entry each upstream of the new configuration takes over.

    The same name and URL first, then a node whose URL stayed under another name. An account is
    more than its URL: two of them at one provider are two credentials, and list other models.
    """
    left = {place_of(entry.state.upstream): entry for entry in entries.values()}
    kept = {}
    for one in config.upstreams:
        entry = left.get(place_of(one))
        if entry is not None and isinstance(one, Node) is not entry.state.is_account:
            kept[one.name] = left.pop(place_of(one))
    by_url = {url: entry for (_, url), entry in left.items() if not entry.state.is_account}
    for node in config.nodes:
        if node.name not in kept and node.url in by_url:
            kept[node.name] = by_url.pop(node.url)
    return kept


def _tell(entry: Entry) -> None:
    watchers = tuple(entry.watchers)
    entry.watchers.clear()
    for watcher in watchers:
        watcher.tell()


def _nowhere() -> None:
    """For an upstream that is gone: there is nothing to undo."""
