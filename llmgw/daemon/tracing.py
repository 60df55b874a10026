"""Who sends traces, if the configuration names a place for them: replaced when it changes."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from llmgw.core.config import TracingConfig
from llmgw.runtime.tasks import Supervisor
from llmgw.runtime.traces import Tracer

log = logging.getLogger("llmgw")

OFF = TracingConfig()


class ClosableTracer(Tracer, Protocol):
    def close(self) -> None:
        """Send what is left; blocks."""


class Tracing:
    """The tracer of the configuration. Its packages are loaded only if there is to be one."""

    def __init__(self, supervisor: Supervisor, *, instance: str) -> None:
        self.tracer: ClosableTracer | None = None
        self._supervisor = supervisor
        self._instance = instance
        self._config = OFF

    def take(self, config: TracingConfig) -> None:
        if config == self._config:
            return
        old, self._config = self.tracer, config
        self.tracer = None if config.endpoint is None else self._open(config)
        if old is not None:
            self._supervisor.spawn("last traces", asyncio.to_thread(old.close))

    async def close(self) -> None:
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.close)

    def _open(self, config: TracingConfig) -> ClosableTracer | None:
        """Traces are no reason not to serve."""
        try:
            from llmgw.observe.traces import open_tracer
        except ImportError as error:
            hint = "pip install '.[otel]' in a clone"
            log.error("traces are not sent", extra={"missing": error.name, "hint": hint})
            return None
        return open_tracer(config, instance=self._instance)
