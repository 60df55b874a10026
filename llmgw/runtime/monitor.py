"""The health loop: asks every node whether it is well, and writes its health half."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator
from typing import Protocol

from llmgw.core.config import Node, Upstream
from llmgw.core.fleet import Place, place_of
from llmgw.core.health import ConnectionLost, Failed, Passed
from llmgw.core.transitions import health_notice
from llmgw.observe.metrics import HEALTH_CHECK_PANICS
from llmgw.runtime.registry import Registry
from llmgw.runtime.rounds import Rounds
from llmgw.runtime.tasks import Supervisor

log = logging.getLogger("llmgw")

RECHECK_SPACING = 1.0


class Probe(Protocol):
    def __call__(self, node: Node, /, *, within: float) -> Awaitable[Passed | Failed | None]:
        """One check, answered or given up `within` so many seconds; None: it was not made, for
        a reason that lies with this gateway."""


class HealthMonitor:
    """Checks nodes at `gateway.health_interval`, and out of turn where a request failed."""

    def __init__(self, registry: Registry, supervisor: Supervisor, probe: Probe) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._probe = probe
        self._rechecked: dict[Place, float] = {}
        self._rounds = Rounds[Node](
            "health check of",
            self._check,
            supervisor,
            clock=registry.clock,
            on_failure=HEALTH_CHECK_PANICS.inc,
        )

    def start(self) -> None:
        self.reload()
        self._supervisor.loop("health", self._rounds.run)

    def reload(self) -> None:
        """Follow the registry's configuration: new nodes are checked at once."""
        self._rounds.watch(self._watched())
        places = {place_of(node) for node, _ in self._watched()}
        self._rechecked = {one: at for one, at in self._rechecked.items() if one in places}

    def recheck(self, upstream: Upstream) -> None:
        """A request could not reach this node: keep others off it, and look at once.

        Of many requests that fail together the first one's check speaks for all. Otherwise a
        burst would be as many failures in a row, and the node dead within milliseconds.
        """
        now = self._registry.clock()
        self._registry.health_event(upstream, ConnectionLost(now))
        spacing = min(RECHECK_SPACING, self._registry.config.gateway.health_interval)
        last = self._rechecked.get(place_of(upstream))
        if (last is None or now - last >= spacing) and self._rounds.ask_now(upstream):
            self._rechecked[place_of(upstream)] = now

    def _watched(self) -> Iterator[tuple[Node, float]]:
        config = self._registry.config
        for node in config.nodes:
            if node.health_path is not None:
                yield node, config.gateway.health_interval

    async def _check(self, node: Node) -> None:
        within = self._registry.config.gateway.health_timeout
        found = await self._probe(node, within=within)
        step = None if found is None else self._registry.health_event(node, found)
        notice = None if step is None else health_notice(step.before, step.after)
        if notice is not None:
            level = logging.WARNING if notice.is_warning else logging.INFO
            log.log(level, notice.message, extra={"node": node.name, **notice.fields})
