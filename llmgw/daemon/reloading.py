"""One reload: read and checked off the loop, addresses bound, then everything swapped at once.

Whatever goes wrong before the swap changes nothing but what is said about it: in the log, the
metrics, /health, the service manager's status and the outcome file.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Protocol

from llmgw.config_file import ConfigError, Loaded
from llmgw.config_file.changes import until_restart
from llmgw.core.config import Config
from llmgw.daemon.bulletin import Bulletin
from llmgw.daemon.front import Front
from llmgw.daemon.notify import Notifier
from llmgw.daemon.sockets import ListenFailed
from llmgw.daemon.source import Source, tell_loaded
from llmgw.observe import metrics
from llmgw.runtime.reload import Outcome, Result

log = logging.getLogger("llmgw")


class Taker(Protocol):
    """Who runs on a configuration."""

    def take(self, loaded: Loaded) -> None:
        """Swap to it: one step of the event loop, no request sees half of it."""

    def refuse(self, reason: str) -> None:
        """Go on as before, and show why."""


class Reloading:
    """Carries reloads out and tells how they went."""

    def __init__(
        self,
        source: Source,
        house: Taker,
        front: Front,
        notifier: Notifier,
        bulletin: Bulletin,
        running: Config,
    ) -> None:
        """`running` is what the process was started with."""
        self._running = running
        self._source = source
        self._house = house
        self._front = front
        self._notifier = notifier
        self._bulletin = bulletin

    async def once(self, number: int) -> None:
        began = time.monotonic()
        self._notifier.reloading()
        outcome = Outcome(number, Result.ERROR, began, faults=("the reload broke off",))
        try:
            outcome = await self._outcome(number, began)
        finally:  # whoever waits must hear of an end, also of a fault of our own
            self._tell(outcome)

    async def _outcome(self, number: int, began: float) -> Outcome:
        try:
            loaded = self._as_far_as_possible(await asyncio.to_thread(self._source.load))
            opening = await asyncio.to_thread(self._front.listeners.open, loaded.config.gateway)
        except (ConfigError, ListenFailed) as error:
            return Outcome(number, Result.ERROR, began, faults=faults_of(error))
        self._house.take(loaded)
        await self._front.change(opening)
        self._bulletin.loaded(loaded)
        tell_loaded(loaded, self._source)
        return Outcome(number, Result.SUCCESS, began, loaded.digest)

    def _as_far_as_possible(self, loaded: Loaded) -> Loaded:
        config, notes = until_restart(self._running, loaded.config)
        return replace(loaded, config=config, notes=(*loaded.notes, *notes)) if notes else loaded

    def _tell(self, outcome: Outcome) -> None:
        metrics.RELOADS.labels(outcome.result.value).inc()
        if outcome.result is Result.ERROR:
            log.error("config reload failed", extra={"faults": list(outcome.faults)})
            self._house.refuse("; ".join(outcome.faults))
            self._notifier.ready(f"the last reload was refused: {'; '.join(outcome.faults)}")
        else:
            self._notifier.ready(f"serving, configuration {outcome.digest}")
        self._bulletin.outcome(outcome)


def faults_of(error: ConfigError | ListenFailed) -> tuple[str, ...]:
    if isinstance(error, ConfigError):
        return tuple(map(str, error.faults))
    return (str(error),)
