"""One client's responses websocket: turns one after another, each a request of its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from functools import partial

from llmgw.core.errors import AuthenticationFailed, GatewayError, InvalidRequest
from llmgw.core.frames import CloseCode, Closed, Message
from llmgw.core.pins import PinKind, Resource
from llmgw.core.policy import Principal, admit
from llmgw.core.transcript import Transcript
from llmgw.core.turn_answers import frame_of_error, warm_up_frames
from llmgw.core.turns import Turn, parse_turn
from llmgw.core.types import AssignmentId, Headers, PoolName
from llmgw.observe.metrics import OPEN_WEBSOCKETS, TIMEOUTS, child
from llmgw.runtime.bridge import FrameDownstream
from llmgw.runtime.direct import Line
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.journey import Journey
from llmgw.runtime.sockets import ClientSocket, Sockets
from llmgw.runtime.support import WebsocketSupport
from llmgw.runtime.turn_record import TurnRecord
from llmgw.runtime.turns import TurnAttempts
from llmgw.runtime.watchman import Draining, Watchman
from llmgw.runtime.way import Way


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who opened the websocket, and with which lines: each turn is sent with them."""

    token: str | None
    headers: Headers
    target: str


class LiveSession:
    """Serves one websocket until either side ends it."""

    def __init__(
        self,
        gateway: Gateway,
        client: ClientSocket,
        visitor: Visitor,
        *,
        sockets: Sockets,
        support: WebsocketSupport,
        draining: Draining,
    ) -> None:
        self._gateway = gateway
        self._client = client
        self._visitor = visitor
        self._sockets = sockets
        self._support = support
        self._transcript = Transcript(gateway.config.websocket.transcript_bytes)
        self._line: Line | None = None
        self._attempts: TurnAttempts | None = None  # of the turn that runs
        self._watchman = Watchman(gateway, client, visitor.token, draining)

    async def run(self) -> None:
        """Until the websocket has ended. When this is cancelled the client has left."""
        OPEN_WEBSOCKETS.inc()
        self._gateway.wheel.add(self)
        try:
            while await self._serve_next():
                pass
        finally:
            self._gateway.wheel.discard(self)
            OPEN_WEBSOCKETS.dec()
            if self._line is not None:
                self._line.socket.close()

    def tick(self, now: float) -> None:
        self._watchman.tick(now)
        line = self._line if self._attempts is None else self._attempts.tried
        if line is not None:
            line.socket.beat(now)

    async def _serve_next(self) -> bool:
        with self._watchman.idle():
            message = await self._client.receive()
        match message:
            case Closed():
                return False
            case Message(is_text=False):
                self._client.close(CloseCode.UNSUPPORTED_DATA, "frames are text")
            case Message(data):
                await self._answer(data)
                await self._taken()
        return True

    async def _taken(self) -> None:
        """A client that takes nothing is asked for nothing more, and not for ever."""
        if not self._client.paused:
            return
        try:
            async with asyncio.timeout(self._gateway.config.streams.client_stall):
                await self._client.drained()
        except TimeoutError:
            child(TIMEOUTS, "client").inc()
            self._client.abort()

    async def _answer(self, frame: bytes) -> None:
        """A failure is an error frame, and told of like an answer."""
        record = TurnRecord(self._gateway.new_request_id())
        out = FrameDownstream(
            self._client,
            pinned=self._line is not None,
            transcript_bytes=self._gateway.config.websocket.transcript_bytes,
        )
        try:
            await self._take(frame, record, out)
        except GatewayError as error:
            out.fail(frame_of_error(error), error.status)
            if isinstance(error, AuthenticationFailed):
                self._client.close(CloseCode.POLICY_VIOLATION, error.message)
        except asyncio.CancelledError:
            record.has_left = True
            raise
        finally:
            if out.status or record.has_left:
                record.tell(self._gateway, out)

    async def _take(self, frame: bytes, record: TurnRecord, out: FrameDownstream) -> None:
        """Raises `GatewayError`."""
        record.principal = principal = self._watchman.authenticate()
        turn = parse_turn(
            frame,
            target=self._visitor.target,
            headers=self._visitor.headers,
            models=self._gateway.config.models,
            request_id=record.request_id,
        )
        if turn is None:
            return
        record.parsed(turn.call.model)
        admit(principal, turn.call)
        if turn.is_warm_up:
            self._warm_up(turn)
        else:
            await self._serve(turn, principal, record.journey, out)

    def _warm_up(self, turn: Turn) -> None:
        """Nothing is asked of an upstream: what it would be warmed up for is not known yet."""
        response_id = f"resp_{secrets.token_hex(16)}"
        self._transcript.add(response_id, parent=turn.previous, input=turn.input)
        if response_id not in self._transcript:
            raise InvalidRequest("the input is too large to be kept", status=413)
        created = int(time.time())
        for frame in warm_up_frames(response_id, turn.call.model, created=created):
            self._client.write(frame)

    async def _serve(
        self, turn: Turn, principal: Principal, journey: Journey, out: FrameDownstream
    ) -> None:
        self._attempts = attempts = TurnAttempts(
            turn,
            line=self._line,
            transcript=self._transcript,
            out=out,
            sockets=self._sockets,
            support=self._support,
            home=partial(self._home, principal.pool),
        )
        way = Way(
            attempts,
            pin=None if self._line is None else self._line.assignment,
            websocket=not self._gateway.config.websocket.bridge,
            commits_early=False,
        )
        try:
            await self._gateway.serve(turn.call, principal, out, way, journey=journey)
        finally:
            self._line, self._attempts = attempts.line, None
        if attempts.was_bridged and out.spoken.response_id is not None:
            self._transcript.add(
                out.spoken.response_id,
                parent=turn.previous,
                input=turn.input,
                output=out.spoken.output,
            )

    async def _home(self, pool: PoolName, response_id: str) -> AssignmentId | None:
        return await self._gateway.pins.find(pool, Resource(PinKind.RESPONSE, response_id))
