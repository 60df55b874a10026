"""One try on one assignment: send, wait for the head, and let the right relay take it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.observe.metrics import TIME_TO_HEADERS
from llmgw.runtime.answer import Errand, Refused, Result, Tools, refused_by_status, request_for
from llmgw.runtime.buffered import PassThrough, relay_buffered
from llmgw.runtime.decoded import decoded
from llmgw.runtime.ports import Exchange
from llmgw.runtime.streaming import StreamRelay

EVENT_STREAM = "text/event-stream"
RUNS_ON = (StreamRelay, PassThrough)  # beyond the moment at which the attempt is decided


class Attempt:
    """Runs one candidate to its `Result`: what the upstream does wrong is a value."""

    def __init__(self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool) -> None:
        self._tools = tools
        self._errand = errand
        self._candidate = candidate
        self._last = last
        self._fail: Callable[[UpstreamError], None] | None = None

    async def run(self) -> Result:
        leave = self._tools.registry.enter(self._candidate.upstream)
        try:
            decided = await self._until_decided()
            return await decided.run() if isinstance(decided, RUNS_ON) else decided
        except UpstreamError as error:
            return Refused(Fault(error.kind))
        finally:
            leave()

    async def _until_decided(self) -> Result | StreamRelay | PassThrough:
        """Up to the first visible event of a stream, or to the end of any other answer that can
        be held: what the client sees from then on is under no first-event timeout."""
        limit = self._first_event_limit()
        if limit is None:
            return await self._decide()
        try:
            async with asyncio.timeout(limit):
                return await self._decide()
        except TimeoutError:
            raise UpstreamError(FaultKind.TIMEOUT, "first event") from None

    async def _decide(self) -> Result | StreamRelay | PassThrough:
        exchange = await self._open()
        decided: Result | StreamRelay | PassThrough | None = None
        try:
            decided = await self._take(decoded(exchange))
        finally:
            if not isinstance(decided, RUNS_ON):
                exchange.abort()
        return decided

    def _first_event_limit(self) -> float | None:
        if self._last or not self._errand.call.stream:
            return None
        return self._errand.config.streams.first_event_timeout

    async def _open(self) -> Exchange:
        """Wait for the response head; an attempt without a byte fails when its node is lost."""
        routing = self._errand.config.routing
        sent_at = self._tools.clock()
        remove = self._tools.registry.on_unreachable(self._candidate.upstream, self._lost)
        try:
            exchange = await self._tools.upstreams.open(
                self._candidate.upstream,
                request_for(self._candidate, self._errand.call, instance=self._tools.instance),
                connect_timeout=routing.connect_timeout,
                header_timeout=routing.header_timeout,
                on_sent=self._on_sent,
            )
        finally:
            remove()
        TIME_TO_HEADERS.observe(self._tools.clock() - sent_at)
        return exchange

    def _on_sent(self, fail: Callable[[UpstreamError], None]) -> None:
        self._fail = fail

    def _lost(self) -> None:
        if self._fail is not None:
            self._fail(UpstreamError(FaultKind.DEAD))

    async def _take(self, exchange: Exchange) -> Result | StreamRelay | PassThrough:
        head = exchange.head
        if head.status >= 400:
            return await refused_by_status(exchange, wall=self._tools.wall())
        if not 200 <= head.status < 300:
            # A redirect is the upstream's business: inference clients do not follow one, and
            # following it here would carry the credential to another place.
            raise UpstreamError(FaultKind.INVALID, "redirect")
        if (head.header("content-type") or "").lower().startswith(EVENT_STREAM):
            relay = StreamRelay(self._tools, self._errand, self._candidate, exchange)
            return await relay.until_visible() or relay
        wall = self._tools.wall()
        return await relay_buffered(self._errand, self._candidate, exchange, wall=wall)


async def run_attempt(tools: Tools, errand: Errand, candidate: Candidate, *, last: bool) -> Result:
    """How an attempt is made where nothing else is said."""
    return await Attempt(tools, errand, candidate, last=last).run()
