"""What is told of one turn once it is over: a request like those that come by HTTP."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from llmgw.core.policy import Principal
from llmgw.core.turns import TURNS
from llmgw.observe import logs
from llmgw.observe.metrics import OTHER, REQUEST_DURATION, REQUESTS, child, status_label
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.journey import Journey, Stage


@dataclass(slots=True, eq=False)
class TurnRecord:
    """Filled in as the turn goes; what nobody asked for is not told."""

    request_id: str
    began: float = field(default_factory=time.perf_counter)
    principal: Principal | None = None
    model: str | None = None
    journey: Journey = field(default_factory=Journey)
    has_left: bool = False  # the client, before the end

    def parsed(self, model: str) -> None:
        self.model = model
        self.journey.spent(Stage.PARSE, self.began)

    def tell(self, gateway: Gateway, out: FrameDownstream) -> None:
        """In the counters and the access log."""
        seconds = time.perf_counter() - self.began
        label = self._label(gateway)
        child(REQUESTS, label, status_label(out.status)).inc()
        REQUEST_DURATION.observe(seconds)
        logs.access(
            method="GET",
            route=TURNS.path,
            status=out.status,
            bytes=out.bytes_sent,
            seconds=round(seconds, 6),
            request_id=self.request_id,
            ending="left" if self.has_left else "cut" if out.was_cut else "whole",
            key=self.principal.name if self.principal is not None else None,
            model=label if self.model else None,
            assignment=self.journey.assignment,
            attempts=self.journey.attempts,
            overhead=round(self.journey.overhead, 6),
        )

    def _label(self, gateway: Gateway) -> str:
        if self.principal is None or not self.model:
            return OTHER
        return gateway.label(self.principal.pool, self.model)
