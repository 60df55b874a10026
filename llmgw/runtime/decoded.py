"""An answer that came encoded although it was asked for as it is: decoded on its way.

What lies behind judges and relays plain bytes, and the client gets them plain.
"""

from __future__ import annotations

from collections.abc import Callable

from llmgw.core.coding import Decoder, decoder_for
from llmgw.core.errors import FaultKind, GatewayError, UpstreamError
from llmgw.core.http import ResponseHead, Sink
from llmgw.runtime.ports import Exchange

MOST_OF_ONE_READ = 16 * 1024 * 1024  # a little data can hold much


def decoded(exchange: Exchange) -> Exchange:
    """The same exchange with a plain body. Raises `UpstreamError` for a coding not known."""
    coding = exchange.head.header("content-encoding")
    try:
        decoder = decoder_for(coding)
    except GatewayError:
        raise UpstreamError(FaultKind.INVALID, "content-encoding") from None
    return exchange if decoder is None else Decoded(exchange, decoder)


class Decoded:
    """An `Exchange` around another."""

    def __init__(self, inner: Exchange, decoder: Decoder) -> None:
        self._inner = inner
        self._decoder = decoder
        self._has_body = False  # an empty one is not encoded, whatever its head says
        self.head = _plain(inner.head)

    async def read(self) -> bytes:
        while data := await self._inner.read():
            if plain := self._decode(data):
                return plain
        self._end()
        return b""

    def splice_to(self, sink: Sink) -> None:
        self._inner.splice_to(_DecodingSink(sink, self._decode, self._end, self._inner))

    def go_past(self, way: object) -> None:
        """Nothing may: what comes is encoded."""

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    def fail(self, fault: UpstreamError) -> None:
        self._inner.fail(fault)

    def abort(self) -> None:
        self._inner.abort()

    def _decode(self, data: bytes) -> bytes:
        self._has_body = True
        parts, room = [], MOST_OF_ONE_READ
        try:
            for part in self._decoder.feed(data):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise UpstreamError(FaultKind.INVALID, "encoded body too large")
        except GatewayError:
            raise UpstreamError(FaultKind.INVALID, "encoded body") from None
        return b"".join(parts)

    def _end(self) -> None:
        if not self._has_body:
            return
        try:
            self._decoder.end()
        except GatewayError:
            raise UpstreamError(FaultKind.CUT, "encoded body") from None


class _DecodingSink:
    """Decodes what is pushed; a fault of the coding ends the call like any other."""

    def __init__(
        self,
        sink: Sink,
        decode: Callable[[bytes], bytes],
        end: Callable[[], None],
        inner: Exchange,
    ) -> None:
        self._sink = sink
        self._decode = decode
        self._end = end
        self._inner = inner
        self._over = False

    def feed(self, data: bytes, chunk: bytes | None = None) -> None:
        if self._over:
            return
        try:
            plain = self._decode(data)
        except UpstreamError as error:
            self._finish(error)
            self._inner.abort()
            return
        if plain:
            self._sink.feed(plain)

    def end(self, fault: UpstreamError | None) -> None:
        if self._over:
            return
        if fault is None:
            try:
                self._end()
            except UpstreamError as error:
                fault = error
        self._finish(fault)

    def _finish(self, fault: UpstreamError | None) -> None:
        self._over = True
        self._sink.end(fault)


def _plain(head: ResponseHead) -> ResponseHead:
    dropped = ("content-encoding", "content-length")
    return ResponseHead(head.status, tuple(one for one in head.headers if one[0] not in dropped))
