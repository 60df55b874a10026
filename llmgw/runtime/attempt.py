"""One try on one assignment: send, wait for the head, and let the right relay take it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.lines import EVENT_STREAM
from llmgw.observe.metrics import TIME_TO_HEADERS
from llmgw.runtime.answer import Errand, Refused, Result, Tools, refused_by_status, request_for
from llmgw.runtime.buffered import PassThrough, relay_buffered
from llmgw.runtime.decoded import decoded
from llmgw.runtime.ports import Exchange, OpenExchange
from llmgw.runtime.streaming import StreamRelay

RUNS_ON = (StreamRelay, PassThrough)  # beyond the moment at which the attempt is decided


class Begun(NamedTuple):
    """An attempt that was begun from callbacks (`runtime/express.py`), as far as it came."""

    exchange: OpenExchange
    relay: StreamRelay | None  # once its answer is known to be an event stream


class Attempt:
    """Runs one candidate to its `Result`: what the upstream does wrong is a value."""

    def __init__(
        self,
        tools: Tools,
        errand: Errand,
        candidate: Candidate,
        *,
        last: bool,
        begun: Begun | None = None,
    ) -> None:
        self._tools = tools
        self._errand = errand
        self._candidate = candidate
        self._last = last
        self._begun = begun
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
            relay = None if self._begun is None else self._begun.relay
            if relay is None:
                decided = await self._take(decoded(exchange))
            else:
                decided = await relay.until_visible() or relay
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
        begun = None if self._begun is None else self._begun.exchange
        if begun is not None and begun.has_head:
            return begun
        sent_at = self._tools.clock()
        remove = self._tools.registry.on_unreachable(self._candidate.upstream, self._lost)
        try:
            if begun is None or begun.stale:
                exchange = await self._ask(fresh=begun is not None)
            else:
                exchange = await begun.answered(
                    header_timeout=self._errand.config.routing.header_timeout,
                    on_sent=self._on_sent,
                )
        finally:
            remove()
        TIME_TO_HEADERS.observe(self._tools.clock() - sent_at)
        return exchange

    async def _ask(self, *, fresh: bool) -> Exchange:
        routing = self._errand.config.routing
        return await self._tools.upstreams.open(
            self._candidate.upstream,
            request_for(self._candidate, self._errand.call, instance=self._tools.instance),
            connect_timeout=routing.connect_timeout,
            header_timeout=routing.header_timeout,
            on_sent=self._on_sent,
            fresh=fresh,
        )

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


class GoOn:
    """How attempts are made where the first was begun already."""

    def __init__(self, begun: Begun) -> None:
        self._begun: Begun | None = begun

    async def __call__(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result:
        begun, self._begun = self._begun, None
        return await Attempt(tools, errand, candidate, last=last, begun=begun).run()


async def run_attempt(tools: Tools, errand: Errand, candidate: Candidate, *, last: bool) -> Result:
    """How an attempt is made where nothing else is said."""
    return await Attempt(tools, errand, candidate, last=last).run()
