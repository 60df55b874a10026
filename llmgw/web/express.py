"""Requests that are there as a whole, with a head that is known: served without a task.

Whatever is not quite like that is aiohttp's to parse (`web/protocol.py`), and refused there where
it is to be refused.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from llmgw.core.errors import GatewayError
from llmgw.core.fields import END, sized
from llmgw.core.headers import refuse_loop
from llmgw.core.policy import KeyRing, token_of
from llmgw.core.routes import BY_PATH, ModelIn
from llmgw.core.types import Body
from llmgw.core.wire import Call, asker_of, parse_call, short_call
from llmgw.runtime.asked import Asked
from llmgw.runtime.express_call import ExpressCall
from llmgw.runtime.journey import Stage, spent
from llmgw.runtime.ports import ANYBODY, Client
from llmgw.web.access import AccessRecord, Ending, OnComplete
from llmgw.web.cors import origin_lines
from llmgw.web.downstream import WholeDownstream
from llmgw.web.errors import answer_error
from llmgw.web.head import id_lines
from llmgw.web.known import Heads, Known
from llmgw.web.plain import plain_head
from llmgw.web.ports import Gateway
from llmgw.web.protocol import Connection
from llmgw.web.riding import Ride

MOST_GATHERED = 4 * 1024 * 1024  # bytes that a client gets room for by its word alone


class Carrier(Protocol):
    def begin(self, asked: Asked, /) -> ExpressCall | None:
        """None: it has to go the way that may wait."""


class ExpressDoor:
    """Takes what it can from a connection that has nothing else to do."""

    def __init__(self, gateway: Gateway, carrier: Carrier, *, tell: OnComplete) -> None:
        self._gateway = gateway
        self._carrier = carrier
        self._heads = Heads()
        self._known = self._heads.kept
        self.tell = tell

    def take(self, connection: Connection, data: bytes) -> ExpressRide | Gathering | None:
        """None: nothing was done. A ride tells the connection when it is over; what is gathered
        comes back to `begin` once it is whole."""
        began = time.perf_counter()
        end = data.find(END)
        rest, length = sized(data, end)
        if end < 0 or length is None:
            return None
        gateway = self._gateway
        known = self._known.get(rest)
        if known is None or not _holds(known, gateway.keyring):
            known = self._other(rest)
            if known is None:
                return None
        limits = gateway.config.gateway
        if length > limits.max_request_body_bytes or (known.has_origin and limits.cors_origins):
            return None
        start = end + len(END)
        missing = start + length - len(data)
        if missing > 0:
            if length > MOST_GATHERED:
                return None
            return Gathering(self, connection, known, data, start=start, length=length)
        return self.begin(connection, known, data[start:], began) if missing == 0 else None

    def begin(
        self, connection: Connection, known: Known, body: Body, began: float
    ) -> ExpressRide | None:
        """`began`: when it was there as a whole, by `time.perf_counter`."""
        gateway = self._gateway
        request_id = gateway.new_request_id()
        call = self._call(known, body, request_id)
        if call is None or not known.principal.models.allows(call.model):
            return None
        own = id_lines(request_id, known.route.dialect)
        if origins := gateway.config.gateway.cors_origins:
            own += origin_lines(None, origins)
        downstream = WholeDownstream(connection, own=own)
        ride = ExpressRide(self, connection, downstream, call, known, began)
        parsed = time.perf_counter()
        carried = ride.carried = self._carrier.begin(ride)
        if carried is None:
            return None
        carried.overhead += spent(Stage.PARSE, parsed - began)
        carried.overhead += spent(Stage.PLAN, time.perf_counter() - parsed)
        return ride

    def _call(self, known: Known, body: Body, request_id: str) -> Call | None:
        route, target, headers, asker = known.route, known.target, known.headers, known.asker
        call = short_call(body, route, target, headers, request_id, asker)
        if call is not None:
            return call
        try:
            models = self._gateway.config.models
            return parse_call(
                route,
                target=target,
                headers=headers,
                body=body,
                models=models,
                request_id=request_id,
            )
        except GatewayError:
            return None

    def _other(self, head: bytes) -> Known | None:
        """One that came once at most, or whose lines vary."""
        known = self._heads.find(head)
        if known is None or not _holds(known, self._gateway.keyring):
            known = self._learn(head)
        return known

    def _learn(self, head: bytes) -> Known | None:
        plain = plain_head(head)
        route = None if plain is None else BY_PATH.get(plain.path)
        if plain is None or route is None or route.model_in is not ModelIn.BODY:
            return None
        gateway, headers = self._gateway, plain.headers
        keyring = gateway.keyring
        try:
            principal, expires_at = keyring.admission(token_of(headers), now=time.time())
            refuse_loop(headers, instance=gateway.instance)
        except GatewayError:
            return None
        known = Known(
            keyring,
            expires_at,
            route,
            route.path + plain.query,
            headers,
            asker_of(headers),
            principal,
            Client(principal.name, principal.labels) if principal.key else ANYBODY,
            "origin" in plain.names,
            {},
        )
        return self._heads.learn(head, known, plain.names)


class Gathering:
    """A request whose body is still coming in."""

    def __init__(
        self,
        door: ExpressDoor,
        connection: Connection,
        known: Known,
        data: bytes,
        *,
        start: int,
        length: int,
    ) -> None:
        """`data`: what came first; in it the body starts, of which there are `length` bytes."""
        self._door = door
        self._connection = connection
        self._known = known
        self.head = data[:start]
        self.at = len(data) - start
        self.body = bytearray(length)
        self.body[: self.at] = memoryview(data)[start:]

    def begin(self) -> ExpressRide | None:
        """It is there as a whole, and is not changed any more."""
        now = time.perf_counter()
        return self._door.begin(self._connection, self._known, self.body, now)


class ExpressRide(Ride):
    """One request that is carried so, up to its end."""

    carried: ExpressCall | None = None
    _goes_on = False

    def __init__(
        self,
        door: ExpressDoor,
        connection: Connection,
        downstream: WholeDownstream,
        call: Call,
        known: Known,
        began: float,
    ) -> None:
        self._door = door
        self._connection = connection
        self._known = known
        self._began = began
        self.call = call
        self.downstream = downstream
        self.principal = known.principal
        self.client = known.client
        self.memo = known.memo

    @property
    def varying(self) -> tuple[int, ...]:
        return self._known.varying

    @property
    def values(self) -> tuple[bytes, ...]:
        return self._known.values

    def over(self) -> None:
        self._connection.ride_over(keep=self.downstream.keeps)
        self._tell()

    def hand_over(self) -> None:
        self._connection.hand_over(self)

    def leave(self) -> None:
        """The client has left. Where a task has taken over, that is cancelled instead."""
        if not self._goes_on and self.carried is not None:
            self.downstream.ending = Ending.LEFT
            self.carried.leave()
            self._tell()

    async def go_on(self) -> bool:
        """In the connection's task: whether the connection is kept."""
        self._goes_on = True
        try:
            if self.carried is not None:
                await self.carried.go_on()
        except asyncio.CancelledError:
            self.downstream.ending = Ending.LEFT
            raise
        except Exception as error:  # noqa: BLE001 - as `Site.handle` answers them all
            answer_error(self.downstream, error, self._known.route.dialect)
        finally:
            self._connection.ride_ended()
            self._tell()
        return self.downstream.keeps

    def _tell(self) -> None:
        carried, downstream = self.carried, self.downstream
        self.carried = None  # it holds this ride: no circle may be left
        if carried is None:
            return
        assignment, attempts, overhead = carried.assignment, 1, carried.overhead
        if carried.errand is not None:
            journey = carried.errand.journey
            assignment, attempts = journey.assignment or assignment, journey.attempts
            overhead += journey.overhead
        call = self.call
        self._door.tell(
            AccessRecord(
                "POST",
                call.route.path,
                downstream.status,
                downstream.bytes_sent,
                time.perf_counter() - self._began,
                call.request_id,
                downstream.ending,
                self.principal.name,
                call.model,
                carried.label,
                assignment,
                attempts,
                overhead,
            )
        )


def _holds(known: Known, keyring: KeyRing) -> bool:
    if known.keyring is not keyring:
        return False
    return known.expires_at is None or time.time() < known.expires_at
