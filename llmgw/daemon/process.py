"""The life of the process: start, ready, reload, upgrade, drain, stop.

SIGHUP reloads, SIGUSR2 upgrades, SIGTERM and SIGINT drain and stop; a second one of these stops
at once. A drain that follows an upgrade has had no such signal yet.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from llmgw import __version__
from llmgw.daemon.bulletin import Bulletin
from llmgw.daemon.front import Front, Opening
from llmgw.daemon.notify import Notifier
from llmgw.daemon.successor import SuccessorFailed, start_successor, tell_ready
from llmgw.runtime.reload import Reloads
from llmgw.runtime.tasks import Supervisor

log = logging.getLogger("llmgw")

READY_WITHIN = 0.5


class House(Protocol):
    """The parts that serve, put together."""

    @property
    def drain_timeout(self) -> float: ...

    @property
    def summary(self) -> str:
        """One line for the service manager's status."""

    def start(self) -> None: ...

    async def listed(self) -> None:
        """Wait until every node has been listed once, with or without success."""

    def set_ready(self) -> None: ...

    def set_draining(self) -> None: ...

    async def stop(self) -> None:
        """What is left to do once nobody is served any more."""


class Process:
    """One gateway from its bound sockets to its end."""

    def __init__(
        self,
        house: House,
        front: Front,
        *,
        supervisor: Supervisor,
        notifier: Notifier,
        bulletin: Bulletin,
        reloads: Reloads,
        command: Sequence[str],
        settle: Callable[[], None],
    ) -> None:
        """`settle` is called once all that stays has been made."""
        self._house = house
        self._front = front
        self._supervisor = supervisor
        self._notifier = notifier
        self._bulletin = bulletin
        self._reloads = reloads
        self._command = command
        self._settle = settle
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._changing: list[asyncio.Task[None]] = []  # what must not go on during a stop
        self._told_to_stop = False
        self._upgrading = False
        self._handed_over = False

    async def run(self, opening: Opening, ready_fd: int | None) -> None:
        """Serve on the bound sockets until told to stop; a predecessor hears of readiness."""
        self._listen_to_signals()
        try:
            await self._start(opening, ready_fd)
            await self._stopping.wait()
        finally:
            await self._shut_down()

    async def _start(self, opening: Opening, ready_fd: int | None) -> None:
        self._house.start()
        await self._front.start(opening)
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_WITHIN):
                await self._house.listed()
        self._settle()
        self._house.set_ready()
        self._changing.append(self._supervisor.loop("reload", self._reloads.run))
        self._bulletin.pid()
        if ready_fd is None:
            self._notifier.ready(self._house.summary)
        else:
            tell_ready(ready_fd)  # the predecessor is still the one that speaks
        log.info("gateway ready", extra={"pid": os.getpid()})

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop)
        loop.add_signal_handler(signal.SIGHUP, self._reloads.ask)
        loop.add_signal_handler(signal.SIGUSR2, self._on_upgrade)

    def _on_stop(self) -> None:
        if self._told_to_stop:
            self._at_once.set()
        self._told_to_stop = True
        self._stopping.set()

    def _on_upgrade(self) -> None:
        if not self._upgrading and not self._stopping.is_set():
            self._upgrading = True
            self._changing.append(self._supervisor.spawn("upgrade", self._upgrade()))

    async def _upgrade(self) -> None:
        listeners = self._front.listeners
        log.info("upgrade started", extra={"version": __version__})
        try:
            pid = await start_successor(self._command, listeners.http, listeners.metrics)
        except SuccessorFailed as error:
            log.error("upgrade failed", extra={"reason": str(error)})
            self._bulletin.upgrade_failed(str(error))
        else:
            log.info("upgrade done", extra={"successor": pid})
            self._notifier.handed_over(pid)
            self._handed_over = True
            self._stopping.set()
        finally:
            self._upgrading = False

    async def _shut_down(self) -> None:
        log.info("shutting down", extra={"handed_over": self._handed_over})
        self._notifier.stopping("finishing what has begun")
        self._house.set_draining()
        for task in self._changing:
            task.cancel()
        await self._front.stop_listening(handed_over=self._handed_over)
        await self._drain()
        await self._front.close(handed_over=self._handed_over)
        await self._supervisor.stop()
        await self._house.stop()
        self._bulletin.take_down()
        log.info("gateway stopped")

    async def _drain(self) -> None:
        """As long as it takes, the drain timeout, or until a second signal."""
        drained = self._supervisor.spawn("drain", self._front.drain(self._house.drain_timeout))
        hurried = self._supervisor.spawn("second signal", self._at_once.wait())
        await asyncio.wait({drained, hurried}, return_when=asyncio.FIRST_COMPLETED)
