"""Every answered request goes into the access log, and those for a model into the counters."""

from __future__ import annotations

from llmgw.core.realtime import REALTIME
from llmgw.core.routes import BY_PATH, ID_ROUTES
from llmgw.core.turns import TURNS
from llmgw.observe import logs
from llmgw.observe.access_lines import Stencil
from llmgw.observe.metrics import REQUEST_DURATION, REQUESTS, child, model_label, status_label
from llmgw.observe.plain import Counter
from llmgw.web.access import AccessRecord
from llmgw.web.ports import Gateway

COUNTED = frozenset(BY_PATH) | {route.path for route in ID_ROUTES} | {REALTIME.path}
SWITCHED = (TURNS.path, 101)  # each turn on it counts itself
MAX_KINDS = 2000

_Kind = tuple[Stencil, Counter | None]


class Tally:
    """Counts what the doors tell of. What a kind of record comes to is found once."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._kinds: dict[object, _Kind] = {}

    def __call__(self, record: AccessRecord) -> None:
        label = record.label or model_label(record.model, self._is_known)
        key = (
            record.method,
            record.route,
            record.status,
            record.ending,
            record.key,
            not record.model,
            label,
            record.assignment,
            record.attempts,
        )
        stencil, counter = self._kinds.get(key) or self._add(key, record, label)
        logs.answered(stencil, record.bytes, record.seconds, record.request_id, record.overhead)
        if counter is not None:
            counter.inc()
            REQUEST_DURATION.observe(record.seconds)

    def _add(self, key: object, record: AccessRecord, label: str) -> _Kind:
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        is_counted = record.route in COUNTED and (record.route, record.status) != SWITCHED
        kind = self._kinds[key] = (
            _stencil(record, label if record.model else None),
            child(REQUESTS, label, status_label(record.status)) if is_counted else None,
        )
        return kind

    def _is_known(self, model: str) -> bool:
        """By any pool: a record does not say which one the client's key belongs to."""
        gateway = self._gateway
        return any(gateway.catalog(pool.name).knows(model) for pool in gateway.config.pools)


def _stencil(record: AccessRecord, model: str | None) -> Stencil:
    return Stencil(
        method=record.method,
        route=record.route,
        status=record.status,
        ending=record.ending.value,
        key=record.key,
        model=model,
        assignment=record.assignment,
        attempts=record.attempts,
    )
