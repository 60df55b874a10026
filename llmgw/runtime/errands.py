"""What one request needs on its way to an upstream, put together."""

from __future__ import annotations

from collections.abc import Callable

from llmgw.core.budget import RetryBudget
from llmgw.core.config import Config
from llmgw.core.headers import own_headers
from llmgw.core.pins import made_by
from llmgw.core.policy import Principal
from llmgw.core.settle import scope_of
from llmgw.core.types import PoolName
from llmgw.core.wire import Call
from llmgw.runtime.answer import Errand, Tools
from llmgw.runtime.capacity import Capacity
from llmgw.runtime.dispatch import Context
from llmgw.runtime.early import EarlyCommit
from llmgw.runtime.journey import Journey
from llmgw.runtime.noted import Watch
from llmgw.runtime.pins import Keeper, Pins
from llmgw.runtime.ports import ANYBODY, Client, Downstream
from llmgw.runtime.settler import Settler

SSE_HEADERS = (("content-type", "text/event-stream; charset=utf-8"),)


class Errands:
    """Makes errands and the contexts of their dispatch; owns the pools' retry budgets."""

    def __init__(
        self,
        tools: Tools,
        settler: Settler,
        watch: Watch,
        capacity: Capacity,
        pins: Pins,
        *,
        label: Callable[[PoolName, str], str],
    ) -> None:
        self.tools = tools
        self.watch = watch
        self._settler = settler
        self._capacity = capacity
        self._pins = pins
        self._label = label
        self._budgets: dict[PoolName, RetryBudget] = {}

    def budget(self, pool: PoolName) -> RetryBudget:
        found = self._budgets.get(pool)
        if found is None:
            found = self._budgets[pool] = RetryBudget()
        return found

    def context(self, call: Call, principal: Principal) -> Context:
        return Context(
            self.tools,
            self._settler,
            self.watch,
            self.budget(principal.pool),
            self._capacity,
            scope_of(call, pool=principal.pool, key=principal.key),
            Client(principal.name, principal.labels) if principal.key else ANYBODY,
        )

    def make(
        self,
        call: Call,
        principal: Principal,
        downstream: Downstream,
        journey: Journey,
        *,
        config: Config,
        commits_early: bool = True,
    ) -> Errand:
        """With `commits_early` a streaming call is given a status line when its wait is long."""
        started = self.tools.clock()
        kind = made_by(call)
        label = journey.model_label = self._label(principal.pool, call.model)
        errand = Errand(
            call,
            config,
            downstream,
            label,
            keeper=None if kind is None else Keeper(self._pins, principal.pool, kind),
            started=started,
            explain=principal.explain or config.routing.explain,
            journey=journey,
        )
        if call.stream and call.route.streams and commits_early:
            own = own_headers(request_id=call.request_id, dialect=call.route.dialect, stream=True)
            errand.early = EarlyCommit(
                downstream,
                dialect=call.route.dialect,
                headers=(*SSE_HEADERS, *own),
                limits=config.streams,
                wheel=self.tools.wheel,
                started=started,
            )
        return errand
