"""The live whole: one configuration, one fleet, one board, and a request's way through them."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import count

from llmgw.core.catalog import Catalog
from llmgw.core.config import Config
from llmgw.core.eligibility import Ask, Eligibility, Exclusion
from llmgw.core.failover import Failover
from llmgw.core.nearest import nearest_model
from llmgw.core.pins import resources_of, unknown_resource
from llmgw.core.policy import KeyRing, Principal
from llmgw.core.routes import ModelIn
from llmgw.core.types import AssignmentId, PoolName
from llmgw.core.wire import Call
from llmgw.observe.metrics import IN_FLIGHT, MODEL_FILTER_EXCLUSIONS, child, model_label
from llmgw.runtime.answer import Errand, Tools
from llmgw.runtime.board import Board
from llmgw.runtime.capacity import Capacity
from llmgw.runtime.dispatch import Dispatch
from llmgw.runtime.errands import Errands
from llmgw.runtime.journey import Journey, Stage
from llmgw.runtime.noted import Watch
from llmgw.runtime.observed import Observed
from llmgw.runtime.pins import Pins
from llmgw.runtime.ports import Downstream, Stores, Upstreams
from llmgw.runtime.registry import Registry
from llmgw.runtime.router import Router
from llmgw.runtime.settler import Settler
from llmgw.runtime.shared import SharedBoard
from llmgw.runtime.snapshot import Snapshot, build_snapshot, seats_of
from llmgw.runtime.standing import ConfigStatus
from llmgw.runtime.traces import Tracer, traced, tracing
from llmgw.runtime.way import HTTP, Way
from llmgw.runtime.wheel import Wheel, period_for

log = logging.getLogger("llmgw")

MODEL_EXCLUSIONS = (Exclusion.MISSING, Exclusion.EMPTY, Exclusion.EXPIRED)


class Gateway:
    """Serves calls. Whoever reads `snapshot` or `keyring` once per request never sees half a
    reload. `ready`, `draining`, `config_status` and `database` are for the process to set, which
    alone knows them.
    """

    def __init__(
        self,
        config: Config,
        keyring: KeyRing,
        *,
        registry: Registry,
        upstreams: Upstreams,
        watch: Watch,
        stores: Stores,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._id_prefix = f"req_{secrets.token_hex(6)}"
        self._ids = count(secrets.randbits(32))
        self.snapshot = build_snapshot(config)
        self.keyring = keyring
        self.registry = registry
        self.instance = instance
        self.board = Board(config.circuits, wall=wall)
        self.shared = SharedBoard(self.board, stores.circuits, stores.drains)
        self.pins = Pins(stores.pins, wall=wall)
        self.capacity = Capacity(clock=clock)
        self.router = Router(registry, self.board, clock=clock, wall=wall)
        self.wheel = Wheel(period_for(config.streams), clock)
        self.tracer: Tracer | None = None
        self.observed = Observed(wanted=bool(config.admin.users), wall=wall)
        self.settler = Settler(
            self.shared, self.router, stores.requests, wall=wall, observe=self.observed.settled
        )
        self.ready = False
        self.draining = False
        self.config_status = ConfigStatus(wall(), "")
        self.database: Callable[[], str] = _unknown
        self._tools = Tools(upstreams, registry, self.wheel, self.instance, clock, wall)
        self.errands = Errands(
            self._tools, self.settler, watch, self.capacity, self.pins, label=self.label
        )

    @property
    def config(self) -> Config:
        return self.snapshot.config

    @property
    def database_state(self) -> str:
        return self.database()

    def replace(self, config: Config, keyring: KeyRing) -> None:
        """Take a new configuration: requests that come from now on see it whole."""
        self.registry.reload(config)
        self.snapshot = build_snapshot(config)
        self.keyring = keyring
        self.board.config = config.circuits
        self.board.retain(id for members in self.snapshot.members.values() for id, _ in members)
        self.shared.forget()
        self.observed.retain(seats_of(self.snapshot))
        self.observed.wanted = bool(config.admin.users)
        self.wheel.period = period_for(config.streams)

    def new_request_id(self) -> str:
        """Unique, and no secret: the operating system is asked for randomness once."""
        return f"{self._id_prefix}{next(self._ids):012x}"

    def catalog(self, pool: PoolName) -> Catalog:
        return self.router.catalog(self.snapshot, pool)

    def ask_of(
        self,
        call: Call,
        principal: Principal,
        *,
        pin: AssignmentId | None = None,
        websocket: bool = False,
    ) -> Ask:
        """All of the call that eligibility depends on."""
        return Ask(
            pool=principal.pool,
            model=None if call.route.model_in is ModelIn.NONE else call.model,
            route=call.route.capability,
            lane=call.lane,
            ring=self.snapshot.rings.get(call.model),
            pin=pin,
            websocket=websocket,
        )

    async def serve(
        self,
        call: Call,
        principal: Principal,
        downstream: Downstream,
        way: Way = HTTP,
        *,
        journey: Journey | None = None,
    ) -> None:
        """Answer the call. Raises `GatewayError` while the client has seen nothing."""
        journey = journey or Journey()
        IN_FLIGHT.inc()
        try:
            if self.tracer is None:
                await self._serve(call, principal, downstream, way, journey)
                return
            model = self.label(principal.pool, call.model)
            with tracing(self.tracer, call, principal.pool, model, journey) as trace:
                await self._serve(call, principal, downstream, traced(way, trace), journey)
        finally:
            IN_FLIGHT.dec()

    async def _serve(
        self,
        call: Call,
        principal: Principal,
        downstream: Downstream,
        way: Way,
        journey: Journey,
    ) -> None:
        snapshot = self.snapshot
        with self.capacity.of_key(principal):
            pin = await self._pin(call, principal, way)
            began = time.perf_counter()
            ask = self.ask_of(call, principal, pin=pin, websocket=way.websocket)
            self._expect_somebody(snapshot, self.router.eligible(snapshot, ask))
            journey.spent(Stage.PLAN, began)
            leave = await self.capacity.enter(
                snapshot.pools[principal.pool],
                snapshot.config.limits,
                partial(self._has_room, snapshot, ask),
            )
            try:
                errand = self.errands.make(
                    call,
                    principal,
                    downstream,
                    journey,
                    config=self.config,
                    commits_early=way.commits_early,
                )
                await self._dispatch(snapshot, ask, errand, principal, way)
            finally:
                leave()

    async def _pin(self, call: Call, principal: Principal, way: Way) -> AssignmentId | None:
        """The only assignment that will do, by what the request refers to."""
        resources = resources_of(call)
        if way.pin is not None or not resources:
            return way.pin
        pin = await self.pins.choose(principal.pool, resources)
        if pin is None and call.route.model_in is ModelIn.NONE:
            raise unknown_resource(resources[0].kind)
        return pin

    def _expect_somebody(self, snapshot: Snapshot, eligibility: Eligibility) -> None:
        ask = eligibility.ask
        if eligibility.reasons:
            self._count_exclusions(eligibility, self.label(ask.pool, ask.model or ""))
        if not eligibility.candidates:
            self._log_refusal(eligibility)
            raise self.router.refusal(snapshot, eligibility)

    async def _dispatch(
        self,
        snapshot: Snapshot,
        ask: Ask,
        errand: Errand,
        principal: Principal,
        way: Way,
    ) -> None:
        call = errand.call
        eligibility = self.router.eligible(snapshot, ask)  # anew: it may have waited in line
        plan = self.router.plan(snapshot, self._with_room(eligibility), call, principal)
        context = self.errands.context(call, principal)
        context.budget.request(self._tools.clock())
        failover = Failover(plan, may_move=ask.pin is None)
        if not await Dispatch(context, errand, failover, way).run():
            raise self.router.refusal(snapshot, eligibility)

    def _has_room(self, snapshot: Snapshot, ask: Ask) -> bool:
        """Also where nobody is eligible any more: there is nothing to wait for."""
        eligibility = self.router.eligible(snapshot, ask)
        return not eligibility.candidates or bool(self._with_room(eligibility).candidates)

    def _with_room(self, eligibility: Eligibility) -> Eligibility:
        limit = self.config.limits.max_in_flight
        if limit is None:
            return eligibility
        found = eligibility.candidates
        free = tuple(one for one in found if self.capacity.is_free(one.assignment, limit))
        return eligibility if len(free) == len(found) else replace(eligibility, candidates=free)

    def label(self, pool: PoolName, model: str) -> str:
        """The `model` label of metrics: clients choose names, so only known ones count."""
        return model_label(model, self.catalog(pool).knows)

    def _count_exclusions(self, eligibility: Eligibility, label: str) -> None:
        for reason in MODEL_EXCLUSIONS:
            if count := eligibility.excluded.get(reason):
                child(MODEL_FILTER_EXCLUSIONS, label, reason).inc(count)

    def _log_refusal(self, eligibility: Eligibility) -> None:
        ask = eligibility.ask
        known = self.catalog(ask.pool).entries
        log.warning(
            "no node serves requested model",
            extra={
                "pool": ask.pool,
                "model": self.label(ask.pool, ask.model or ""),
                "nearest": nearest_model(ask.model or "", known),
                "excluded": _words(eligibility),
            },
        )


def _unknown() -> str:
    return ""


def _words(eligibility: Eligibility) -> str:
    pairs: Iterable[tuple[Exclusion, int]] = eligibility.excluded.items()
    return ", ".join(f"{reason}={count}" for reason, count in pairs)
