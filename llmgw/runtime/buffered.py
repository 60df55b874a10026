"""An answer that is no event stream: read whole and judged, or passed through when too large."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

import orjson

from llmgw.core import document
from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.failures import MAX_CLASSIFIED_BYTES, error_answer, find_error
from llmgw.core.lines import AnswerKind, is_json
from llmgw.core.routes import ModelIn, Route
from llmgw.core.types import Dialect
from llmgw.core.usage import Usage, usage_of_answer, usage_of_body
from llmgw.observe.metrics import PASSTHROUGH, child
from llmgw.runtime.answer import (
    Broken,
    Errand,
    Refused,
    Result,
    Served,
    answer_headers,
    fault_inside,
    read_up_to,
)
from llmgw.runtime.journey import Stage
from llmgw.runtime.ports import Downstream, Exchange
from llmgw.runtime.splice import ClientStalled

log = logging.getLogger("llmgw")

NO_CONTENT = 204  # its head may say JSON all the same


class PassThrough:
    """An answer too large to hold: once it runs it can no longer be replaced."""

    def __init__(
        self, errand: Errand, candidate: Candidate, exchange: Exchange, read: bytes
    ) -> None:
        self._errand = errand
        self._candidate = candidate
        self._exchange = exchange
        self._read = read  # what has come so far

    async def run(self) -> Result:
        """Raises `ClientStalled`."""
        try:
            await self._commit()
            return await self._move()
        finally:
            self._exchange.abort()

    async def _commit(self) -> None:
        errand, head = self._errand, self._exchange.head
        log.info("response exceeded buffer limit; passing through", extra=self._fields())
        child(PASSTHROUGH, errand.model_label, "buffer_limit").inc()
        errand.seen()
        if errand.keeper is not None:
            await errand.keeper.answered(self._candidate.assignment, self._read)
        headers = answer_headers(head, self._candidate, errand, stream=False)
        errand.downstream.commit(head.status, headers)

    async def _move(self) -> Result:
        downstream, status = self._errand.downstream, self._exchange.head.status
        stall = self._errand.config.streams.client_stall
        try:
            await _pump(self._exchange, downstream, self._taken(), stall=stall)
        except UpstreamError as error:
            log.warning("response truncated after commit", extra=self._fields())
            downstream.cut()
            return Broken(Fault(error.kind), status)
        downstream.finish()
        return Served(status)

    def _taken(self) -> bytes:
        """What was read, which is held no longer than until the client's transport has it."""
        read, self._read = self._read, b""
        return read

    def _fields(self) -> dict[str, str]:
        return {
            "request_id": self._errand.call.request_id,
            "assignment": self._candidate.assignment,
        }


async def relay_buffered(
    errand: Errand, candidate: Candidate, exchange: Exchange, *, wall: float
) -> Result | PassThrough:
    """Raises `UpstreamError` while the client has seen nothing of it."""
    body, whole = await read_up_to(exchange, errand.config.gateway.max_buffered_response_bytes)
    if not whole:
        if errand.downstream.committed:
            raise UpstreamError(FaultKind.INVALID, "no event stream")
        return PassThrough(errand, candidate, exchange, body)
    began = time.perf_counter()
    refused = _judge(exchange, body, errand.call.route, wall)
    if refused is not None:
        return refused
    if errand.downstream.committed:
        raise UpstreamError(FaultKind.INVALID, "no event stream")
    errand.seen()
    errand.journey.spent(Stage.ANSWER, began)
    if errand.keeper is not None:
        await errand.keeper.answered(candidate.assignment, body)
    head = exchange.head
    headers = answer_headers(head, candidate, errand, stream=False)
    errand.downstream.respond(head.status, headers, body)
    return Served(head.status, usage_of_body(body, errand.call.route.dialect))


def usage_of_success(kind: AnswerKind, body: bytes, dialect: Dialect) -> Usage | None:
    """What a whole answer under 200 tells of tokens; None: it may be no success, and is to be
    judged."""
    if len(body) > MAX_CLASSIFIED_BYTES:
        return None
    if kind is not AnswerKind.JSON:
        return usage_of_body(body, dialect)
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if answer is None or find_error(answer) is not None:
        return None
    return usage_of_answer(answer, body, dialect)


def _judge(exchange: Exchange, body: bytes, route: Route, wall: float) -> Refused | None:
    """An error object under 200 is a failure, and so is what is said to be JSON and is not.

    What lives at the upstream is shown as it is: a client's file, a response that failed.
    """
    head = exchange.head
    if route.model_in is ModelIn.NONE or head.status == NO_CONTENT:
        return None
    if not is_json(head.header("content-type") or ""):
        return None
    if len(body) > MAX_CLASSIFIED_BYTES:
        _expect_json_ends(body)
        return None
    answer = document.parse(body)
    if answer is None and not document.is_json(body):
        raise UpstreamError(FaultKind.INVALID, "not JSON")
    error = find_error(answer)
    if error is None:
        return None
    fault = fault_inside(head, FaultKind.IN_BAND, error, wall=wall)
    return Refused(fault, head.headers, error_answer(answer, route.dialect), error)


def _expect_json_ends(body: bytes) -> None:
    """A large body is not parsed: it would hold up every other stream."""
    text = body.removeprefix(document.BOM).strip()
    if text[:1] not in (b"{", b"[") or text[-1:] not in (b"}", b"]"):
        raise UpstreamError(FaultKind.INVALID, "not JSON")


async def _pump(exchange: Exchange, to: Downstream, data: bytes, *, stall: float) -> None:
    """Read on as the client takes it."""
    while data:
        to.write(data)
        data = b""  # it may be large, and the wait long
        if to.paused:
            await _drained(to, stall)
        data = await exchange.read()


async def _drained(to: Downstream, stall: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(stall):
            await to.drained()
        return
    raise ClientStalled
