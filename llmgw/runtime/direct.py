"""One try of a turn over an upstream's websocket: frames withheld until one is visible."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from llmgw.core import document
from llmgw.core.classify import Fault
from llmgw.core.config import BaseUrl
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.failures import error_answer
from llmgw.core.frames import CloseCode, Closed, Message
from llmgw.core.sight import Sight
from llmgw.core.turns import Turnstile, fault_of_frame, kind_of_frame, sight_of_frame
from llmgw.core.types import AssignmentId, Dialect
from llmgw.core.usage import usage_of_body
from llmgw.observe.metrics import OPEN_STREAMS, WITHHELD_OVERFLOWS, child
from llmgw.runtime.answer import Broken, Errand, Refused, Result, Served, Tools
from llmgw.runtime.bridge import FrameDownstream, ended_early
from llmgw.runtime.sockets import UpstreamSocket
from llmgw.runtime.splice import ClientStalled

ENDINGS = frozenset({"error", "response.completed", "response.failed", "response.incomplete"})


@dataclass(eq=False, slots=True)
class Line:
    """A live upstream websocket, which serves one turn after another."""

    assignment: AssignmentId
    url: BaseUrl
    socket: UpstreamSocket
    turnstile: Turnstile = field(default_factory=Turnstile)


class Host(Protocol):
    """The turn that is tried."""

    line: Line | None  # what the client's socket goes on with
    out: FrameDownstream

    def frame(self) -> bytes: ...

    async def connect(self, tools: Tools, errand: Errand, candidate: Candidate) -> Line | Refused:
        """The live line, or a new one. Raises `UpstreamError`."""


class DirectAttempt:
    """One try over a websocket. `run` is None where the upstream takes none."""

    def __init__(
        self,
        turn: Host,
        tools: Tools,
        errand: Errand,
        candidate: Candidate,
        *,
        last: bool,
    ) -> None:
        self._turn = turn
        self._tools = tools
        self._errand = errand
        self._candidate = candidate
        self._last = last
        self._line: Line | None = None
        self._held: list[bytes] = []
        self._is_dead = False

    async def run(self) -> Result | None:
        registry = self._tools.registry
        leave = registry.enter(self._candidate.upstream)
        remove = registry.on_unreachable(self._candidate.upstream, self._lost)
        result: Result | None = None
        try:
            refused = await self._until_visible()
            remove()
            result = refused or await self._relay()
        except UpstreamError as error:
            result = Refused(Fault(FaultKind.DEAD if self._is_dead else error.kind))
        finally:
            remove()
            leave()
            self._settle_line(result)
        unsupported = isinstance(result, Refused) and result.fault.kind is FaultKind.UNSUPPORTED
        return None if unsupported else result

    async def _until_visible(self) -> Refused | None:
        try:
            async with asyncio.timeout(self._first_event_limit()):
                line = await self._turn.connect(self._tools, self._errand, self._candidate)
                if isinstance(line, Refused):
                    return line
                self._line = line
                await self._ask(line)
                return await self._hold(line)
        except TimeoutError:
            raise UpstreamError(FaultKind.TIMEOUT, "first event") from None

    def _first_event_limit(self) -> float | None:
        return None if self._last else self._errand.config.streams.first_event_timeout

    async def _ask(self, line: Line) -> None:
        await line.socket.drop()  # it came before it was asked: of an earlier turn
        line.turnstile.begin()
        await line.socket.send(Message(self._turn.frame()))

    async def _hold(self, line: Line) -> Refused | None:
        """Withhold frames until one is visible; None once the client is to see them."""
        limits = self._errand.config.streams
        room = limits.hold_bytes
        while True:
            found = await self._next(line)
            if isinstance(found, Closed):
                return _refused_by_close(found, heard=bool(self._held))
            sight = Sight.HIDDEN
            if len(found) <= limits.max_event_bytes:
                sight = sight_of_frame(found)
                room -= len(found)
            else:
                room = -1
            if sight is Sight.FAULT:
                return _refused_by_frame(found)
            self._held.append(found)
            if room < 0 and sight is Sight.HIDDEN:
                child(WITHHELD_OVERFLOWS, self._errand.model_label).inc()
                return None
            if sight is not Sight.HIDDEN:
                return None

    async def _relay(self) -> Result:
        """From the first visible frame to the last."""
        self._errand.shown(self._candidate.assignment, now=self._tools.clock())
        if self._errand.keeper is not None:
            start = b"".join(b"data: %b\n\n" % frame for frame in self._held)
            self._errand.keeper.streaming(self._candidate.assignment, start)
        OPEN_STREAMS.inc()
        try:
            for frame in self._held:
                ended = await self._pass(frame)
                if ended is not None:
                    return ended
            return await self._pump()
        finally:
            OPEN_STREAMS.dec()

    async def _pump(self) -> Result:
        line = self._line
        assert line is not None  # noqa: S101 - it was connected before anything was visible
        silence = self._errand.config.streams.idle_timeout
        while True:
            try:
                async with asyncio.timeout(silence):
                    found = await self._next(line)
            except TimeoutError:
                self._turn.out.fail(ended_early(silent=True), 504)
                return Broken(Fault(FaultKind.IDLE), 200)
            except UpstreamError as error:
                self._turn.out.fail(ended_early(), 502)
                return Broken(Fault(error.kind), 200)
            if isinstance(found, Closed):
                self._turn.out.fail(ended_early(), 502)
                return Broken(Fault(FaultKind.CUT), 200)
            ended = await self._pass(found)
            if ended is not None:
                return ended

    async def _pass(self, frame: bytes) -> Served | None:
        """On to the client; what it came to, once that was the last."""
        out = self._turn.out
        out.send(frame)
        if out.paused:
            try:
                async with asyncio.timeout(self._errand.config.streams.client_stall):
                    await out.drained()
            except TimeoutError:
                raise ClientStalled from None
        if kind_of_frame(frame) not in ENDINGS:
            return None
        usage = usage_of_body(frame, Dialect.RESPONSES)
        fault = fault_of_frame(frame)[0] if sight_of_frame(frame) is Sight.FAULT else None
        return Served(200, usage, fault)

    async def _next(self, line: Line) -> bytes | Closed:
        """The next frame of this turn."""
        while True:
            found = await line.socket.receive()
            if isinstance(found, Closed):
                return found
            if not found.is_text:
                raise UpstreamError(FaultKind.INVALID, "binary frame")
            if line.turnstile.admits(found.data):
                return found.data

    def _lost(self) -> None:
        self._is_dead = True
        if self._line is not None:
            self._line.socket.abort()

    def _settle_line(self, result: Result | None) -> None:
        """A line that served is the socket's from now on; one that said why it did not, stays
        if it was that before; any other ends here."""
        line, before = self._line, self._turn.line
        if line is None:
            return
        served = isinstance(result, Served) and result.fault is None
        answered = isinstance(result, (Served, Refused)) and line.socket.ended is None
        if not (served or (answered and line is before)):
            line.socket.close()
            return
        if before is not None and before is not line:
            before.socket.close()
        self._turn.line = line


def _refused_by_frame(frame: bytes) -> Refused:
    fault, error = fault_of_frame(frame)
    body = error_answer(document.parse(frame), Dialect.RESPONSES) if error else b""
    return Refused(fault, (), body, error)


def _refused_by_close(closed: Closed, *, heard: bool) -> Refused:
    """The frame may be too large for this upstream, which is nobody's failure."""
    if closed.broken:
        return Refused(Fault(FaultKind.INVALID))
    if closed.code == CloseCode.TOO_BIG:
        return Refused(Fault(FaultKind.STATUS, 413))
    if not heard:
        return Refused(Fault(FaultKind.LOST))
    cut = closed.code == CloseCode.ABNORMAL
    return Refused(Fault(FaultKind.CUT if cut else FaultKind.EMPTY))
