"""Requests that callbacks alone carry: no task is woken between a client's bytes and an
upstream's, nor between an answer and its client.

It is the way that `Gateway.serve` goes, as far as there is nothing to wait for: with the first
candidate of the plan, on a connection that is idle, or can be made without a task. Whatever else
turns up, a failure above all, is handed over (`runtime/express_call.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from llmgw.core.pins import made_by
from llmgw.core.plan import RoutePlan
from llmgw.core.types import Dialect
from llmgw.runtime.answer import request_for
from llmgw.runtime.asked import Asked, Sent, marked, sent_to, sent_with_slots
from llmgw.runtime.express_call import ExpressCall
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.lanes import Lane, Lanes, Seat


class Express:
    """Begins what can be carried so."""

    def __init__(self, gateway: Gateway, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._lanes = Lanes(gateway, clock=clock)

    def begin(self, asked: Asked) -> ExpressCall | None:
        """Send it. None: nothing was done, and `Gateway.serve` is to be asked."""
        gateway = self._gateway
        lane = self._lane(asked)
        if lane is None:
            return None
        call, turn, plan = asked.call, lane.turns.last + 1, None
        if lane.first and call.session is None and call.cache_key is None and self._is_fair(asked):
            seat = lane.first[turn % len(lane.first)]
        else:
            plan = self._plan(lane, asked, turn)
            led = lane.seats.get(plan.candidates[0].assignment)
            if led is None:
                return None
            seat = led
        candidate = seat.candidate
        if candidate.probe:  # its circuit wants a slot first
            return None
        sent = asked.memo.get(candidate.assignment)
        if sent is None or sent.upstream is not candidate.upstream:
            try:
                sent = asked.memo[candidate.assignment] = self._rendered(asked, seat)
            except ValueError:
                return None
        if sent.slots:
            head = sent.filled(call.request_id, len(call.body), asked.values)
        else:
            head = sent.head(call.request_id, len(call.body))
        within = lane.snapshot.config.routing.connect_timeout
        exchange = seat.pool.begin(head, call.body, within=within)
        if exchange is None:
            return None
        lane.turns.last = turn
        return ExpressCall(gateway, asked, lane, seat, exchange, turn, plan)

    def _lane(self, asked: Asked) -> Lane | None:
        """None also where a client is owed more than the answer of one upstream."""
        gateway, call, principal = self._gateway, asked.call, asked.principal
        if (
            gateway.tracer is not None
            or principal.max_in_flight is not None
            or principal.explain
            or (call.route.dialect is Dialect.RESPONSES and _is_pinned(asked))
        ):
            return None
        return self._lanes.find(gateway.snapshot, call, principal)

    def _plan(self, lane: Lane, asked: Asked, turn: int) -> RoutePlan:
        """Where more than the turn counts."""
        return self._gateway.router.plan(
            lane.snapshot, lane.eligibility, asked.call, asked.principal, turn=turn
        )

    def _is_fair(self, asked: Asked) -> bool:
        """No assignment is demoted for this key and model."""
        board, principal = self._gateway.board, asked.principal
        return board.is_blank or not board.demoted(principal.pool, principal.key, asked.call.model)

    def _rendered(self, asked: Asked, seat: Seat) -> Sent:
        """Raises `ValueError` for what can't be sent."""
        gateway, upstream = self._gateway, seat.candidate.upstream
        call, varying = asked.call, asked.varying
        if varying:
            call = marked(call, varying)
        request = request_for(seat.candidate, call, instance=gateway.instance)
        sent = sent_to(upstream, call, gateway.errands.tools.upstreams.render(upstream, request))
        return sent_with_slots(sent) if varying else sent


def _is_pinned(asked: Asked) -> bool:
    call = asked.call
    return (
        call.previous_response_id is not None or bool(call.file_ids) or made_by(call) is not None
    )
