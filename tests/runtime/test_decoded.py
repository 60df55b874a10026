"""Answers that come encoded reach the client plain, whole or told to be broken."""

import gzip
import zlib

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.runtime.decoded import MOST_OF_ONE_READ, decoded
from tests.fakes.exchange import FakeExchange

PLAIN = b'data: {"a": "' + b"x" * 300 + b'"}\n\n'
PACKED = gzip.compress(PLAIN)


def exchange(*reads: bytes, coding: str = "gzip", **fields) -> FakeExchange:
    headers = (
        ("content-type", "text/event-stream"),
        ("content-encoding", coding),
        ("content-length", "9"),
    )
    return FakeExchange(200, headers, reads, **fields)


class Collected:
    def __init__(self) -> None:
        self.data = b""
        self.ends: list[UpstreamError | None] = []

    def feed(self, data: bytes, chunk: bytes | None = None) -> None:
        assert data, "never empty"
        self.data += data

    def end(self, fault: UpstreamError | None) -> None:
        self.ends.append(fault)


async def whole(made) -> bytes:
    found = b""
    while data := await made.read():
        found += data
    return found


@pytest.mark.parametrize("cut", [1, 7, len(PACKED) - 1])
async def test_a_body_is_pulled_plain_however_it_is_cut(cut):
    made = decoded(exchange(PACKED[:cut], PACKED[cut:]))

    assert await whole(made) == PLAIN


async def test_a_body_is_pushed_plain():
    sink = Collected()

    decoded(exchange(*(bytes([one]) for one in PACKED))).splice_to(sink)

    assert sink.data == PLAIN
    assert sink.ends == [None]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_an_empty_body_is_whole_whatever_coding_its_head_says(coding):
    sink = Collected()
    decoded(exchange(coding=coding)).splice_to(sink)

    assert (sink.data, sink.ends) == (b"", [None])
    assert await whole(decoded(exchange(coding=coding))) == b""


def test_the_head_describes_the_plain_body():
    assert decoded(exchange()).head.headers == (("content-type", "text/event-stream"),)


@pytest.mark.parametrize("coding", ["identity", "Identity"])
def test_what_is_plain_stays_as_it_is(coding):
    plain = exchange(coding=coding)

    assert decoded(plain) is plain


def test_an_unknown_coding_is_the_upstreams_fault():
    with pytest.raises(UpstreamError) as caught:
        decoded(exchange(coding="rot13"))

    assert caught.value.kind is FaultKind.INVALID


@pytest.mark.parametrize(
    ("reads", "kind"),
    [
        pytest.param((b"nonsense",), FaultKind.INVALID, id="no gzip"),
        pytest.param((PACKED[:-9],), FaultKind.CUT, id="stops before the coding does"),
    ],
)
async def test_a_broken_coding_ends_it_pulled_and_pushed(reads, kind):
    sink, pushed = Collected(), exchange(*reads)

    decoded(pushed).splice_to(sink)
    with pytest.raises(UpstreamError) as caught:
        await whole(decoded(exchange(*reads)))

    assert caught.value.kind is kind
    assert [fault.kind for fault in sink.ends] == [kind]


async def test_a_little_data_cannot_hold_too_much():
    bomb = zlib.compress(b"\0" * (MOST_OF_ONE_READ + 1))

    with pytest.raises(UpstreamError) as caught:
        await whole(decoded(exchange(bomb, coding="deflate")))

    assert caught.value.kind is FaultKind.INVALID


async def test_the_rest_is_the_inner_exchanges():
    inner = exchange(hangs=True)
    made, sink = decoded(inner), Collected()
    made.splice_to(sink)

    made.pause()
    assert inner.paused
    made.resume()
    assert not inner.paused
    made.fail(UpstreamError(FaultKind.IDLE))
    made.abort()

    assert [fault.kind for fault in sink.ends] == [FaultKind.IDLE]
    assert inner.aborted
