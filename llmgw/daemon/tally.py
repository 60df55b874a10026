"""Every answered request goes into the access log, and those for a model into the counters."""

from __future__ import annotations

from llmgw.core.realtime import REALTIME
from llmgw.core.routes import BY_PATH, ID_ROUTES
from llmgw.core.turns import TURNS
from llmgw.observe import logs
from llmgw.observe.metrics import REQUEST_DURATION, REQUESTS, child, model_label, status_label
from llmgw.runtime.gateway import Gateway
from llmgw.web.access import AccessRecord

COUNTED = frozenset(BY_PATH) | {route.path for route in ID_ROUTES} | {REALTIME.path}
SWITCHED = (TURNS.path, 101)  # each turn on it counts itself


class Tally:
    """Counts what the doors tell of."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def __call__(self, record: AccessRecord) -> None:
        label = record.label or model_label(record.model, self._is_known)
        logs.access(
            method=record.method,
            route=record.route,
            status=record.status,
            bytes=record.bytes,
            seconds=round(record.seconds, 6),
            request_id=record.request_id,
            ending=record.ending.value,
            key=record.key,
            model=label if record.model else None,
            assignment=record.assignment,
            attempts=record.attempts,
            overhead=round(record.overhead, 6),
        )
        if record.route in COUNTED and (record.route, record.status) != SWITCHED:
            child(REQUESTS, label, status_label(record.status)).inc()
            REQUEST_DURATION.observe(record.seconds)

    def _is_known(self, model: str) -> bool:
        """By any pool: a record does not say which one the client's key belongs to."""
        gateway = self._gateway
        return any(gateway.catalog(pool.name).knows(model) for pool in gateway.config.pools)
