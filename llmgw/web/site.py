"""What one listener serves: the way of every request from its head to the end of its answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Final, cast

from aiohttp import HttpVersion10, HttpVersion11, web

from llmgw.core.errors import GatewayError, InvalidRequest
from llmgw.core.types import Dialect
from llmgw.observe.logs import exception_fields
from llmgw.web.access import AccessRecord, Ending, OnComplete, forget
from llmgw.web.cors import answer_options, origin_lines
from llmgw.web.downstream import HttpDownstream
from llmgw.web.errors import answer_error, as_gateway_error
from llmgw.web.head import id_lines
from llmgw.web.incoming import Incoming
from llmgw.web.ports import Gateway
from llmgw.web.protocol import Connection
from llmgw.web.riding import Take
from llmgw.web.table import Match, Page, Table, dialect_of

log = logging.getLogger("llmgw.web")

UNKNOWN: Final = "unknown"
MALFORMED: Final = "malformed"
SPOKEN: Final = (HttpVersion10, HttpVersion11)


class Site:
    """A table of pages on one gateway. Each answered request is told to `on_complete`."""

    def __init__(
        self, gateway: Gateway, pages: Iterable[Page], *, on_complete: OnComplete = forget
    ) -> None:
        self._gateway = gateway
        self._table = Table(pages)
        self._on_complete = on_complete
        self.take: Take | None = None  # requests that need not come to `handle`

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        path, query = _target_of(request)
        match = self._table.find(path)
        incoming = self._incoming(request, match, path, query)
        response: web.StreamResponse | None = None
        try:
            response = await self._answer(incoming, match, path)
            if response is None and not incoming.downstream.ended:
                raise RuntimeError("a handler returned without an answer")
        except asyncio.CancelledError:
            incoming.downstream.ending = Ending.LEFT
            raise
        except Exception as error:  # noqa: BLE001 - the one place that answers them all
            answer_error(incoming.downstream, error, incoming.dialect)
        finally:
            cast(Connection, request.protocol).ended_request(request)
            self._complete(incoming, response, began)
        return incoming.downstream.sent if response is None else _signed(incoming, response)

    def refuse(
        self, connection: Connection, request: web.BaseRequest | None, error: BaseException | None
    ) -> web.StreamResponse:
        """Answer bytes that were no request. What a handler let through ends the connection."""
        known = as_gateway_error(error) if error is not None else None
        if known is None:
            fields = exception_fields(error) if error is not None else {}
            log.error("request handler failed", extra=fields)
            raise ConnectionResetError("the answer can't be completed")
        return self._refuse(connection, known, error)

    def _refuse(
        self, connection: Connection, known: GatewayError, error: BaseException | None
    ) -> web.StreamResponse:
        began = time.perf_counter()
        request_id = self._gateway.new_request_id()
        downstream = HttpDownstream(connection, None, own=id_lines(request_id, Dialect.JSON))
        answer_error(downstream, known, Dialect.JSON)
        log.info(
            "malformed request refused",
            extra={"status": known.status, "reason": type(error).__name__},
        )
        seconds = time.perf_counter() - began
        self.tell(
            AccessRecord(
                "-",
                MALFORMED,
                downstream.status,
                downstream.bytes_sent,
                seconds,
                request_id,
                downstream.ending,
            )
        )
        return downstream.sent

    async def _answer(
        self, incoming: Incoming, match: Match | None, path: str
    ) -> web.StreamResponse | None:
        method = incoming.request.method
        if incoming.request.version not in SPOKEN:  # the parser knows 0.9 and 2.0 as well
            raise _version_not_spoken()
        if method == "OPTIONS" and (match or path == "*"):
            allow = match.page.allow if match else "GET, HEAD, OPTIONS, POST"
            answer_options(incoming, allow, self._gateway.config.gateway.cors_origins)
            return None
        if match is None:
            raise self._table.missing(path)
        return await match.page.handler(method)(incoming)

    def _incoming(
        self, request: web.BaseRequest, match: Match | None, path: str, query: str
    ) -> Incoming:
        request_id = self._gateway.new_request_id()
        dialect = match.page.dialect if match else dialect_of(path)
        origins = self._gateway.config.gateway.cors_origins
        own = id_lines(request_id, dialect)
        if origins:
            own += origin_lines(request.headers.get("Origin"), origins)
        return Incoming(
            request,
            request_id,
            HttpDownstream(cast(Connection, request.protocol), request, own=own),
            route=match.page.path if match else UNKNOWN,
            dialect=dialect,
            tail=match.tail if match else "",
            query=query,
        )

    def _complete(
        self, incoming: Incoming, response: web.StreamResponse | None, began: float
    ) -> None:
        downstream, journey = incoming.downstream, incoming.journey
        self.tell(
            AccessRecord(
                incoming.request.method,
                incoming.route,
                downstream.status if response is None else response.status,
                downstream.bytes_sent,
                time.perf_counter() - began,
                incoming.request_id,
                downstream.ending,
                incoming.key,
                incoming.model,
                journey.model_label,
                journey.assignment,
                journey.attempts,
                journey.overhead,
            )
        )

    def tell(self, record: AccessRecord) -> None:
        try:
            self._on_complete(record)
        except Exception as error:  # noqa: BLE001 - whoever counts must not spoil the answer
            log.error("access record lost", extra=exception_fields(error))


def _signed(incoming: Incoming, response: web.StreamResponse) -> web.StreamResponse:
    """What aiohttp is to send carries our id, and ends a connection that is to end."""
    if not response.prepared:
        response.headers.setdefault("x-request-id", incoming.request_id)
        if cast(Connection, incoming.request.protocol).is_ending:
            response.force_close()
    return response


def _version_not_spoken() -> GatewayError:
    return InvalidRequest("HTTP/1.1 is spoken here", status=505, code="http_version_not_supported")


def _target_of(request: web.BaseRequest) -> tuple[str, str]:
    """Path and query of the request line, whose target may be a whole URL (RFC 9112, 3.2.2)."""
    target = request.raw_path
    if not target.startswith("/") and target != "*":
        target = request.rel_url.raw_path_qs or "/"
    path, mark, query = target.partition("?")
    return path, mark + query
