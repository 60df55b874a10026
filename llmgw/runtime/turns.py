"""The attempts of one turn: on a websocket where the upstream takes them, else over SSE."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from llmgw.core import document
from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failures import find_error
from llmgw.core.transcript import Lead, Transcript
from llmgw.core.turn_answers import PREVIOUS_NOT_FOUND, previous_not_found_error
from llmgw.core.turns import Turn, bridged
from llmgw.core.types import AssignmentId
from llmgw.runtime.answer import Errand, Refused, Result, Tools
from llmgw.runtime.attempt import run_attempt
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.connecting import Connecting
from llmgw.runtime.direct import DirectAttempt, Line
from llmgw.runtime.sockets import Sockets
from llmgw.runtime.support import WebsocketSupport

Home = Callable[[str], Awaitable[AssignmentId | None]]
"""Where a response lives, as far as the pool has seen it."""


class TurnAttempts:
    """How one turn is tried on a candidate; `line` is what its socket goes on with."""

    def __init__(
        self,
        turn: Turn,
        *,
        line: Line | None,
        transcript: Transcript,
        out: FrameDownstream,
        sockets: Sockets,
        support: WebsocketSupport,
        home: Home,
    ) -> None:
        self.line = line
        self.tried = line  # the upstream websocket of the latest attempt, which is pinged
        self.was_bridged = False
        self._turn = turn
        self._transcript = transcript
        self.out = out
        self._sockets = sockets
        self._support = support
        self._home = home

    async def __call__(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result:
        if self._support.of(candidate.upstream) is not False:
            direct = DirectAttempt(self, tools, errand, candidate, last=last)
            result = await direct.run()
            if result is not None:
                return result
            self._support.note(candidate.upstream, takes=False)
        return await self._bridge(tools, errand, candidate, last=last)

    async def _bridge(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result:
        if not errand.config.websocket.bridge:
            return Refused(Fault(FaultKind.UNSUPPORTED))
        lead = self._lead()
        if lead is not None and not await self._is_known(lead, candidate):
            return _unknown_previous()
        self.was_bridged = True
        call = bridged(self._turn, lead)
        return await run_attempt(tools, replace(errand, call=call), candidate, last=last)

    async def _is_known(self, lead: Lead, candidate: Candidate) -> bool:
        """Whether the turn can be understood: all of it is here, or the rest is over there."""
        return lead.base is None or await self._home(lead.base) == candidate.assignment

    def _lead(self) -> Lead | None:
        previous = self._turn.previous
        return None if previous is None else self._transcript.lead(previous)

    # --- what a direct attempt asks

    def frame(self) -> bytes:
        """What the transcript knows, an upstream's websocket does not."""
        previous = self._turn.previous
        known = previous is not None and previous in self._transcript
        return self._turn.frame(self._lead() if known else None)

    async def connect(self, tools: Tools, errand: Errand, candidate: Candidate) -> Line | Refused:
        """The live line, if it goes there and is alive; else a new one."""
        line = self.line
        if line is not None and line.socket.ended is None and _goes_to(line, candidate):
            return line
        connecting = Connecting(tools, self._sockets, errand.config)
        socket = await connecting.open(candidate, errand.call)
        if isinstance(socket, Refused):
            return socket
        self._support.note(candidate.upstream, takes=True)
        self.tried = Line(candidate.assignment, candidate.upstream.url, socket)
        return self.tried


def _goes_to(line: Line, candidate: Candidate) -> bool:
    """An assignment whose upstream has moved in a reload is no longer where the line goes."""
    return (line.assignment, line.url) == (candidate.assignment, candidate.upstream.url)


def _unknown_previous() -> Refused:
    fault = Fault(FaultKind.STATUS, 400, code=PREVIOUS_NOT_FOUND)
    answer = {"error": previous_not_found_error()}
    return Refused(fault, (), document.dump(answer), find_error(answer))
