"""The request's body: read up to the limit, decoded within the same limit."""

from __future__ import annotations

import asyncio

from aiohttp import HttpVersion11

from llmgw.core.coding import Decoder, decoder_for
from llmgw.core.errors import GatewayError, InvalidRequest, TooLarge
from llmgw.web.incoming import Incoming
from llmgw.web.limits import BODY_SILENCE, MEMBERS


async def read_body(incoming: Incoming, *, limit: int) -> bytes:
    """Call it once the client is known: only then a client that waits is told to go on.

    Raises `TooLarge`, `UnsupportedMedia`, `InvalidRequest`.
    """
    decoder = decoder_for(incoming.header("Content-Encoding"), members=MEMBERS)
    declared = incoming.request.content_length
    if declared is not None and declared > limit:
        raise _too_large(limit)
    if declared is None:
        _refuse_transfer_coding(incoming)
    _answer_expectation(incoming)
    content = incoming.request.content
    if decoder is None and declared is not None and content.is_eof():
        return content.read_nowait()  # it came with its head
    collector = _Collector(decoder, limit)
    while not content.at_eof():
        await collector.add(await _next(incoming))
    return collector.whole()


class _Collector:
    def __init__(self, decoder: Decoder | None, limit: int) -> None:
        self._decoder = decoder
        self._limit = limit
        self._parts: list[bytes] = []
        self._encoded = 0
        self._size = 0

    async def add(self, data: bytes) -> None:
        self._encoded += len(data)
        if self._encoded > self._limit:
            raise _too_large(self._limit)
        if self._decoder is None:
            self._parts.append(data)
            return
        for part in self._decoder.feed(data):
            self._size += len(part)
            if self._size > self._limit:
                raise _too_large(self._limit)
            self._parts.append(part)
            await asyncio.sleep(0)  # a little data can hold much: others get their turn

    def whole(self) -> bytes:
        if self._decoder is not None and self._encoded:
            self._decoder.end()
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


async def _next(incoming: Incoming) -> bytes:
    content = incoming.request.content
    if content.is_eof():
        return content.read_nowait()
    try:
        async with asyncio.timeout(BODY_SILENCE):
            return await content.readany()
    except TimeoutError:
        raise InvalidRequest(
            "the request body did not arrive in time", status=408, code="request_timeout"
        ) from None


def _refuse_transfer_coding(incoming: Incoming) -> None:
    """The parser takes away `chunked`, the last one; what lies below it nobody here decodes, and
    the upstream would not be told of it (RFC 9112, 6.1)."""
    codings = ",".join(incoming.request.headers.getall("Transfer-Encoding", ()))
    if codings.strip().lower() not in ("", "chunked"):
        raise InvalidRequest(
            "no transfer coding but chunked is known here",
            status=501,
            code="unsupported_transfer_coding",
        )


def _answer_expectation(incoming: Incoming) -> None:
    expected = incoming.header("Expect")
    if expected is None:
        return
    if expected.lower() != "100-continue":
        raise InvalidRequest("no such expectation is met", status=417, code="expectation_failed")
    if incoming.request.version >= HttpVersion11 and not incoming.request.content.is_eof():
        incoming.downstream.continue_reading()


def _too_large(limit: int) -> GatewayError:
    return TooLarge(f"the request body is larger than {limit} bytes")
