"""The one async loop: walk the route plan until a candidate serves or nobody else may.

Decisions come from `core` as values; this module carries them out, in order, and sees to it that
every way out, a leaving client's too, is settled.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from llmgw.core.budget import RetryBudget
from llmgw.core.classify import Fault, Verdict, Whose, after_recheck, classify
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failover import Ending, Failover, Handoff
from llmgw.core.final import Failure
from llmgw.core.settle import Scope
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.observe.metrics import (
    ASSIGNMENT_IN_FLIGHT,
    CLIENT_WRITE_FAILURES,
    RETRY_BUDGET_EXHAUSTED,
    TIMEOUTS,
    child,
)
from llmgw.runtime.answer import Broken, Errand, Refused, Result, Served, Tools
from llmgw.runtime.capacity import Capacity, Leave
from llmgw.runtime.last_word import answer_failure
from llmgw.runtime.noted import UNREACHED, Watch, note
from llmgw.runtime.ports import ANYBODY, Client
from llmgw.runtime.settler import Settler
from llmgw.runtime.splice import ClientStalled
from llmgw.runtime.way import HTTP, Way

log = logging.getLogger("llmgw")

CLIENT_LEFT = 499  # what nginx calls it; no client sees it


class Context(NamedTuple):
    """What one dispatch is handed besides its errand."""

    tools: Tools
    settler: Settler
    watch: Watch
    budget: RetryBudget
    capacity: Capacity
    scope: Scope
    client: Client = ANYBODY


class Dispatch:
    """Serves one errand. `run` returns once the client has its answer.

    Where a first attempt was made from callbacks (`runtime/express.py`), `served` or `left` tells
    how it ended instead.
    """

    def __init__(
        self,
        context: Context,
        errand: Errand,
        failover: Failover,
        way: Way = HTTP,
        *,
        started: float | None = None,
    ) -> None:
        """`started`: unix seconds, where the settler has been told of it already."""
        self._run_attempt = way.attempt
        self._context = context
        self._errand = errand
        self._failover = failover
        self._failures: list[Failure] = []
        self._status = CLIENT_LEFT
        self._usage = UNKNOWN
        self._is_new = started is None
        self._started = context.tools.wall() if started is None else started

    async def run(self) -> bool:
        """False: no candidate could be dispatched, and nothing was answered."""
        context = self._context
        if self._is_new:
            context.settler.begin(context.scope, started=self._started, client=context.client)
        try:
            return await self._walk()
        except asyncio.CancelledError:
            self._client_left()
            raise
        except ClientStalled:
            self._stalled()
            return True
        finally:
            self._errand.seen()
            self._settle()

    def served(self, candidate: Candidate, result: Served | Broken) -> None:
        """The first candidate has, up to the end that the client has been told of."""
        self._failover.dispatch(now=self._started)
        note(self._context.watch, candidate, result)
        self._served(candidate, result.status, result.usage, result.fault)
        self._settle()

    def left(self, *, stalled: bool = False) -> None:
        """The client did while the first candidate was at it; `stalled`: it took nothing more."""
        self._failover.dispatch(now=self._started)
        if stalled:
            self._stalled()
        else:
            self._client_left()
        self._errand.seen()
        self._settle()

    async def _walk(self) -> bool:
        while (candidate := self._failover.candidate) is not None:
            leave = self._enter(candidate)
            if leave is None:
                self._failover.skip()
                continue
            try:
                if await self._is_served_by(candidate):
                    return True
            finally:
                leave()
        if not self._failures:
            return False
        self._status = answer_failure(self._failures, self._errand)
        return True

    def _enter(self, candidate: Candidate) -> Leave | None:
        """None: as much runs there as is allowed."""
        limit = self._errand.config.limits.max_in_flight
        return self._context.capacity.take(candidate.assignment, limit)

    async def _is_served_by(self, candidate: Candidate) -> bool:
        """Try it, unless its probe slot is lost; False: go on with the next."""
        owner = await self._admit(candidate)
        if owner is None and candidate.probe:
            self._failover.skip()
            return False
        self._failover.dispatch(now=self._context.tools.wall(), owner=owner)
        return await self._is_over(candidate, await self._try(candidate))

    async def _try(self, candidate: Candidate) -> Result:
        tools, errand = self._context.tools, self._errand
        errand.journey.attempt(candidate.assignment, now=tools.clock())
        running = child(ASSIGNMENT_IN_FLIGHT, candidate.assignment)
        running.inc()
        try:
            return await self._run_attempt(tools, errand, candidate, last=self._failover.is_last)
        finally:
            running.dec()

    async def _admit(self, candidate: Candidate) -> str | None:
        """The owner of the probe slot that was taken, for a candidate that needs one."""
        if not candidate.probe:
            return None
        owner = f"{self._context.tools.instance}:{self._errand.call.request_id}"
        taken = await self._context.settler.lease(self._context.scope, candidate, owner)
        return owner if taken else None

    async def _is_over(self, candidate: Candidate, result: Result) -> bool:
        note(self._context.watch, candidate, result)
        match result:
            case Served() | Broken():
                self._served(candidate, result.status, result.usage, result.fault)
                return True
            case Refused():
                return await self._refused(candidate, result)

    def _served(
        self, candidate: Candidate, status: int, usage: Usage, fault: Fault | None
    ) -> None:
        """The client has seen this attempt: no other may follow it, whatever came of it."""
        self._status, self._usage = status, usage
        now = self._context.tools.wall()
        if fault is None:
            self._failover.succeed(now=now, status=status)
        else:
            verdict = self._classify(candidate, fault, visible=True)
            self._failover.record(verdict, now=now, visible=True, status=status)

    async def _refused(self, candidate: Candidate, result: Refused) -> bool:
        verdict = await self._judge(candidate, result.fault)
        self._failures.append(
            Failure(candidate, result.fault, verdict, result.headers, result.body, result.error)
        )
        tools = self._context.tools
        step = self._failover.record(
            verdict,
            now=tools.wall(),
            visible=False,
            budget_ok=self._budget_allows(verdict),
            status=result.fault.status,
        )
        if isinstance(step, Handoff):
            if verdict.budgeted:
                self._context.budget.spend(tools.clock())
            self._log_handoff(candidate, result.fault, verdict)
            await self._context.settler.handoff(self._context.scope, step.attempt)
            return False
        if step.ending is Ending.OVER_BUDGET:
            child(RETRY_BUDGET_EXHAUSTED, self._context.scope.pool).inc()
        self._status = answer_failure(self._failures, self._errand)
        return True

    async def _judge(self, candidate: Candidate, fault: Fault) -> Verdict:
        verdict = self._classify(candidate, fault, visible=False)
        if verdict.recheck and self._errand.config.routing.recheck_404:
            model = self._errand.call.model
            gone = await self._context.watch.model_is_gone(candidate.upstream, model)
            verdict = after_recheck(verdict, gone=gone, lane=self._context.scope.lane)
        if verdict.whose is Whose.CREDENTIAL:
            log.error("upstream refused its credential", extra=self._fields(candidate, verdict))
        return verdict

    def _classify(self, candidate: Candidate, fault: Fault, *, visible: bool) -> Verdict:
        return classify(
            fault,
            provenance=candidate.provenance,
            lane=self._context.scope.lane,
            is_account=candidate.is_account,
            visible=visible,
        )

    def _budget_allows(self, verdict: Verdict) -> bool:
        if not verdict.budgeted:
            return True
        retried = self._errand.call.stainless_retries > 0
        return self._context.budget.allows(self._context.tools.clock(), retried=retried)

    def _stalled(self) -> None:
        child(TIMEOUTS, "client").inc()
        self._errand.downstream.cut()
        self._client_left()

    def _client_left(self) -> None:
        self._failover.cancel(now=self._context.tools.wall())
        if self._errand.downstream.committed:
            child(CLIENT_WRITE_FAILURES, self._errand.model_label).inc()
            log.info(
                "client write failed after commit",
                extra={"request_id": self._errand.call.request_id},
            )

    def _settle(self) -> None:
        context, journey = self._context, self._errand.journey
        journey.status, journey.usage = self._status, self._usage
        if not self._failover.log:
            context.settler.abandon(context.scope)
            return
        context.settler.settle(
            context.scope,
            self._failover,
            client=context.client,
            status=self._status,
            started=self._started,
            usage=self._usage,
            first_event=journey.first_event,
            model_label=self._errand.model_label,
        )

    def _log_handoff(self, candidate: Candidate, fault: Fault, verdict: Verdict) -> None:
        log.warning(_handoff_text(fault, self._errand), extra=self._fields(candidate, verdict))

    def _fields(self, candidate: Candidate, verdict: Verdict) -> dict[str, str]:
        return {
            "request_id": self._errand.call.request_id,
            "assignment": candidate.assignment,
            "node": candidate.upstream.name,
            "reason": verdict.reason,
        }


def _handoff_text(fault: Fault, errand: Errand) -> str:
    if fault.kind in (*UNREACHED, FaultKind.EXHAUSTED):
        return "retrying after connection failure"
    if errand.call.stream and fault.kind is not FaultKind.STATUS:
        return "retrying after streaming failure before first chunk"
    return "retrying after refusal"
