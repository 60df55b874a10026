"""The composition root: here, and only here, real parts are put together."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from llmgw.config_file import Loaded
from llmgw.core.config import Config
from llmgw.core.policy import KeyRing
from llmgw.daemon.keyfile import Keys
from llmgw.daemon.records import Records
from llmgw.daemon.tracing import Tracing
from llmgw.observe import logs
from llmgw.observe.metrics import CONFIG_LOADED, before_render
from llmgw.runtime.discoverer import DiscoveryLoop
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.gauges import show_fleet
from llmgw.runtime.live_gauges import LiveGauges
from llmgw.runtime.monitor import HealthMonitor
from llmgw.runtime.registry import Registry
from llmgw.runtime.scraper import LoadScraper
from llmgw.runtime.standing import ConfigStatus
from llmgw.runtime.tasks import Supervisor
from llmgw.runtime.watch import NodeWatch
from llmgw.upstream.client import WatchClient
from llmgw.upstream.known_lists import KnownLists
from llmgw.upstream.listing import list_models
from llmgw.upstream.pool import Pools
from llmgw.upstream.probe import probe
from llmgw.upstream.scrape import scrape_gpus, scrape_load
from llmgw.upstream.websocket import Sockets


class Lane(Protocol):
    def reload(self) -> None: ...


class House:
    """All live parts of one gateway. Made inside the running loop."""

    def __init__(
        self, loaded: Loaded, supervisor: Supervisor, records: Records, *, instance: str
    ) -> None:
        config = loaded.config
        self.records = records
        self._supervisor = supervisor
        self._client = WatchClient()
        self._pools = Pools()
        self.sockets = Sockets()
        self._registry = Registry(config)
        self._monitor = HealthMonitor(self._registry, supervisor, partial(probe, self._client))
        self._discoverer = DiscoveryLoop(
            self._registry, supervisor, partial(list_models, self._client, KnownLists())
        )
        self._scraper = LoadScraper(
            self._registry,
            supervisor,
            partial(scrape_load, self._client),
            partial(scrape_gpus, self._client),
        )
        self._keys = Keys(loaded, self._use_keys)
        self.gateway = Gateway(
            config,
            self._keys.ring,
            registry=self._registry,
            upstreams=self._pools,
            stores=records.stores,
            instance=instance,
            watch=NodeWatch(self._registry, self._monitor, self._discoverer),
        )
        self.gateway.database = lambda: records.state
        self._tracing = Tracing(supervisor, instance=instance)
        self._trace(config)
        self._show(loaded)
        show_fleet(self._registry)
        before_render(self._live_gauges().refresh)

    @property
    def drain_timeout(self) -> float:
        return self.gateway.config.gateway.drain_timeout

    @property
    def summary(self) -> str:
        config = self.gateway.config
        digest = self.gateway.config_status.digest
        return f"serving {len(config.upstreams)} upstreams, configuration {digest}"

    async def prepare(self) -> None:
        """Know the circuits and drains of the database before the first request."""
        await self.gateway.shared.look()

    def start(self) -> None:
        self._monitor.start()
        self._discoverer.start()
        self._scraper.start()
        self._supervisor.loop("streams", self.gateway.wheel.run)
        self._supervisor.loop("keys file", self._keys.run)
        self._supervisor.loop("circuits", self.gateway.shared.follow)
        self._supervisor.loop("long requests", self.gateway.settler.watch)
        self.records.start()

    async def listed(self) -> None:
        await self._discoverer.first_round()

    def take(self, loaded: Loaded) -> None:
        """Swap to another configuration in one step of the event loop. Who asks nodes follows."""
        self._keys.take(loaded)
        self.gateway.replace(loaded.config, self._keys.ring)
        self._pools.keep(one.url for one in loaded.config.upstreams)
        self._follow(iter((self._monitor, self._discoverer, self._scraper)))
        logs.setup(loaded.config.log, sys.stderr)
        self._trace(loaded.config)
        self._show(loaded)

    def refuse(self, reason: str) -> None:
        """A reload was refused: go on as before, and show why."""
        status = self.gateway.config_status
        self.gateway.config_status = ConfigStatus(status.loaded_at, status.digest, reason)

    def set_ready(self) -> None:
        self.gateway.ready = True

    def set_draining(self) -> None:
        self.gateway.draining = True

    async def stop(self) -> None:
        """What is not written yet is; connections to upstreams are the last to go."""
        await self.records.stop()
        self._pools.close()
        self.sockets.close()
        await self._client.close()
        await self._tracing.close()

    def _follow(self, lanes: Iterator[Lane]) -> None:
        """Let those who ask nodes follow, each in a step of the event loop of its own: with a
        thousand nodes each of them takes as long as all else of a swap."""
        lane = next(lanes, None)
        if lane is not None:
            lane.reload()
            asyncio.get_running_loop().call_soon(self._follow, lanes)

    def _trace(self, config: Config) -> None:
        self._tracing.take(config.tracing)
        self.gateway.tracer = self._tracing.tracer

    def _live_gauges(self) -> LiveGauges:
        board = self.gateway.board
        return LiveGauges(
            circuits=board.view,
            pools=self._pools.stats,
            upstreams=lambda: self.gateway.config.upstreams,
            drained=board.draining,
        )

    def _use_keys(self, ring: KeyRing) -> None:
        self.gateway.keyring = ring

    def _show(self, loaded: Loaded) -> None:
        self.gateway.config_status = ConfigStatus(time.time(), loaded.digest)
        self.records.keep = loaded.config.database.keep
        CONFIG_LOADED.set_to_current_time()
