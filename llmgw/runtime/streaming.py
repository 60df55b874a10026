"""An event stream on its way: withheld until it shows something, then spliced, then ended well.

How a stream ends is decided from its retained tail: whole, with an error event of ours, or cut
where nothing more can be said.
"""

from __future__ import annotations

import logging
import time
from typing import assert_never, cast

from llmgw.core.answers import error_event
from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.relay import HELD, Faulted, Held, OpenRelay, Relay, Release, ReleaseCause
from llmgw.core.tail import EndingKind, Outcome, Tail
from llmgw.core.types import Dialect
from llmgw.observe.metrics import INTER_EVENT_GAP, OPEN_STREAMS, WITHHELD_OVERFLOWS, child
from llmgw.runtime.answer import (
    Broken,
    Errand,
    Refused,
    Result,
    Served,
    Tools,
    answer_headers,
    fault_inside,
)
from llmgw.runtime.journey import Stage
from llmgw.runtime.ports import Exchange
from llmgw.runtime.splice import Splice

log = logging.getLogger("llmgw")


class StreamRelay:
    """One attempt's event stream: `until_visible`, and if that is None, `run`.

    From callbacks: `offer` what comes until it is no longer held, then `show`, `splice_to` what
    is to be told of its end, and `conclude`.
    """

    def __init__(
        self, tools: Tools, errand: Errand, candidate: Candidate, exchange: Exchange
    ) -> None:
        self._tools = tools
        self._errand = errand
        self._candidate = candidate
        self._exchange = exchange
        self._dialect = errand.call.route.dialect
        self._relay = self._begin_relay()
        self._found: Held | Release | Faulted = HELD
        self._ended = False
        self._shown_at = 0.0
        self._tail = Tail(self._dialect)

    async def until_visible(self) -> Refused | None:
        """Withhold; None once the client is to see this attempt. Raises `UpstreamError`."""
        while not self.is_decided:
            self.offer(await self._exchange.read())
        return self.refused()

    async def run(self) -> Result:
        """From the first visible event to the end. Raises `ClientStalled`."""
        released = self.show()
        fault = None
        try:
            if self._ended:
                self._send_all(released)
            else:
                fault = await self.splice().run(released)
        finally:
            OPEN_STREAMS.dec()
        return self.conclude(fault)

    @property
    def is_decided(self) -> bool:
        return not isinstance(self._found, Held)

    @property
    def is_shown(self) -> bool:
        """The client is to see this attempt."""
        return isinstance(self._found, Release)

    def offer(self, data: bytes) -> None:
        """What one read gave; b"": the body has ended."""
        self._found = self._relay.feed(data) if data else self._relay.end()
        self._ended = not data

    def refused(self) -> Refused | None:
        if not isinstance(self._found, Faulted):
            return None
        kind, error, body = self._found.kind, self._found.error, self._found.body
        head = self._exchange.head
        fault = fault_inside(head, kind, error, wall=self._tools.wall())
        return Refused(fault, head.headers, body, error)

    def show(self) -> bytes:
        """Commit to this attempt; what was released comes back, and goes out before all else."""
        errand, head = self._errand, self._exchange.head
        began, shown_at = time.perf_counter(), self._tools.clock()
        release = cast(Release, self._found)
        released, cause = release.data, release.cause
        self._shown_at = shown_at
        self._note(cause)
        errand.seen()
        errand.shown(self._candidate.assignment, now=shown_at)
        if errand.keeper is not None:
            errand.keeper.streaming(self._candidate.assignment, released)
        if not errand.downstream.committed:
            headers = answer_headers(head, self._candidate, errand, stream=True)
            errand.downstream.cork()  # the head goes out with what was released
            errand.downstream.commit(head.status, headers)
        errand.journey.spent(Stage.ANSWER, began)
        OPEN_STREAMS.inc()
        return released

    def splice(self) -> Splice:
        """What moves the rest of a stream that has not ended."""
        return Splice(
            self._exchange,
            self._errand.downstream,
            self._tail,
            dialect=self._dialect,
            limits=self._errand.config.streams,
            wheel=self._tools.wheel,
        )

    def conclude(self, fault: UpstreamError | None) -> Served | Broken:
        """Say to the client how it ended, and tell whose fault it was."""
        self._note_gap(self._tools.clock() - self._shown_at)
        tail, downstream = self._tail, self._errand.downstream
        outcome, usage = tail.outcome(), tail.usage()
        ending = tail.ending(cut=fault is not None, outcome=outcome)
        if ending.completion:
            downstream.write(ending.completion)
        status = self._exchange.head.status
        match ending.kind:
            case EndingKind.COMPLETE:
                downstream.finish(close=fault is not None)
                return Served(status, usage, self._own_fault(outcome))
            case EndingKind.MISSING_TERMINAL:
                number = tail.next_sequence_number()
                downstream.write(_last_word(self._dialect, fault, number))
                downstream.finish(close=True)
            case EndingKind.BROKEN:
                downstream.cut()
            case _:
                assert_never(ending.kind)
        self._log_end(fault)
        return Broken(Fault(FaultKind.CUT if fault is None else fault.kind), status, usage)

    def _begin_relay(self) -> Relay | OpenRelay:
        if self._errand.call.is_compact:
            return OpenRelay()
        limits = self._errand.config.streams
        return Relay(
            self._dialect, hold_bytes=limits.hold_bytes, max_event_bytes=limits.max_event_bytes
        )

    def _send_all(self, released: bytes) -> None:
        """It ended before it was decided."""
        self._tail.push(released)
        self._errand.downstream.write(released)

    def _note(self, cause: ReleaseCause) -> None:
        if cause is ReleaseCause.OVERFLOW:
            child(WITHHELD_OVERFLOWS, self._errand.model_label).inc()

    def _note_gap(self, seconds: float) -> None:
        """Nothing is counted for each event: the bytes that are retained tell afterwards."""
        events = self._tail.count_events(self._errand.downstream.bytes_sent)
        if events > 1:
            INTER_EVENT_GAP.observe(seconds / (events - 1))

    def _own_fault(self, outcome: Outcome) -> Fault | None:
        """What the upstream itself said went wrong, at the end of a stream that was relayed."""
        if not outcome.is_failed:
            return None
        status = self._exchange.head.status
        return Fault.from_error(FaultKind.IN_BAND, outcome.error, status=status)

    def _log_end(self, fault: UpstreamError | None) -> None:
        log.warning(
            "stream terminated by upstream failure",
            extra={
                "request_id": self._errand.call.request_id,
                "assignment": self._candidate.assignment,
                "node": self._candidate.upstream.name,
                "reason": "no terminal event" if fault is None else fault.kind,
            },
        )


def _last_word(dialect: Dialect, fault: UpstreamError | None, number: int) -> bytes:
    """One error event instead of the rest of the stream."""
    silent = fault is not None and fault.kind is FaultKind.IDLE
    return error_event(
        dialect,
        status=504 if silent else 502,
        message="the upstream went silent" if silent else "the upstream ended the stream early",
        type="server_error",
        code="upstream_timeout" if silent else "upstream_error",
        sequence_number=number,
    )
