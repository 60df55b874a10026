"""Content codings of bodies, undone in bounded steps: a little data can hold much."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

import brotli
from backports import zstd

from llmgw.core.errors import InvalidRequest, UnsupportedMedia

STEP: Final = 256 * 1024
WINDOW_LOG_MAX: Final = 23  # 8 MiB: what a decoder of this coding must take (RFC 9659)
GZIP: Final = 16 + zlib.MAX_WBITS


class Decoder(Protocol):
    """One coding of one body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` holds, in parts of about `STEP`. Raises `InvalidRequest`."""

    def end(self) -> None:
        """Raises `InvalidRequest` where the body stops before the coding does."""


def decoder_for(coding: str | None, *, members: float = math.inf) -> Decoder | None:
    """None: the body is what it says. Raises `UnsupportedMedia`.

    `members`: how many gzip members or zstd frames it may have. An empty one takes few bytes,
    but a decoder of its own.
    """
    if coding is None:
        return None
    name = coding.strip().lower() or "identity"
    if name == "identity":
        return None
    make = _DECODERS.get(name)
    if make is None:
        raise UnsupportedMedia(
            f"a body may be encoded as one of {', '.join(sorted(_DECODERS))}",
            headers=(("accept-encoding", ", ".join(sorted(_DECODERS))),),
        )
    return make(members)


class Zlib:
    """gzip, in any number of members, and deflate, with or without its zlib wrapper."""

    def __init__(self, members: float, window_bits: int | None = None) -> None:
        self._left = members
        self._window_bits = window_bits
        self._inner: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        is_full = False  # a full step may leave output behind, even where all input is taken
        while data or is_full:
            if self._inner is None or self._inner.eof:
                self._left = _one_less(self._left)
                self._inner = zlib.decompressobj(self._window_bits or _deflate_bits(data))
            try:
                part = self._inner.decompress(data, STEP)
            except zlib.error:
                raise _broken() from None
            yield part
            data = self._inner.unconsumed_tail or self._inner.unused_data
            is_full = len(part) >= STEP and not self._inner.eof

    def end(self) -> None:
        if self._inner is None or not self._inner.eof:
            raise _broken()


class Zstandard:
    """Any number of frames."""

    def __init__(self, members: float) -> None:
        self._left = _one_less(members)
        self._inner = _new_zstd()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inner.needs_input or self._inner.eof):
            if self._inner.eof:
                self._left = _one_less(self._left)
                self._inner = _new_zstd()
            try:
                yield self._inner.decompress(data, STEP)
            except zstd.ZstdError:
                raise _broken() from None
            data = self._inner.unused_data if self._inner.eof else b""

    def end(self) -> None:
        if not self._inner.eof:
            raise _broken()


class Brotli:
    def __init__(self, members: float) -> None:  # it has no members
        self._inner = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        part = self._step(data)
        yield part
        while len(part) >= STEP or not self._inner.can_accept_more_data():
            part = self._step(b"")
            yield part

    def end(self) -> None:
        if not self._inner.is_finished():
            raise _broken()

    def _step(self, data: bytes) -> bytes:
        try:
            return bytes(self._inner.process(data, output_buffer_limit=STEP))
        except brotli.error:
            raise _broken() from None


_DECODERS: Mapping[str, Callable[[float], Decoder]] = {
    "gzip": lambda members: Zlib(members, GZIP),
    "x-gzip": lambda members: Zlib(members, GZIP),
    "deflate": Zlib,
    "zstd": Zstandard,
    "br": Brotli,
}


def _deflate_bits(data: bytes) -> int:
    """Some clients send the bare stream under the name of the wrapped one (RFC 9110, 8.4.1.2)."""
    wrapped = data[0] & 0x0F == zlib.DEFLATED and (
        len(data) == 1 or int.from_bytes(data[:2]) % 31 == 0
    )
    return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS


def _one_less(members: float) -> float:
    if not members:
        raise InvalidRequest("the body is encoded in too many parts")
    return members - 1


def _new_zstd() -> zstd.ZstdDecompressor:
    limit = {int(zstd.DecompressionParameter.window_log_max): WINDOW_LOG_MAX}
    return zstd.ZstdDecompressor(options=limit)


def _broken() -> InvalidRequest:
    return InvalidRequest("the body can't be decoded by its content-encoding")
