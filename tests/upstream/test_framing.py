"""Where a response body ends, in any cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.upstream.framing import (
    MAX_EXTENSION,
    MAX_TRAILERS,
    Chunked,
    FixedLength,
    Framing,
    UntilEof,
)


def walk(framing: Framing, *pieces: bytes) -> tuple[bytes, bool, str, bool]:
    """Feed the pieces as a connection would, and tell body, done, flaw and surplus."""
    body = b""
    for piece in pieces:
        if framing.done:
            return body, True, framing.flaw, True
        if framing.flaw:
            break
        body += framing.feed(piece)
    return body, framing.done, framing.flaw, framing.surplus


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


WHOLE = [
    pytest.param(b"0\r\n\r\n", b"", id="nothing"),
    pytest.param(b"5\r\nhello\r\n0\r\n\r\n", b"hello", id="one chunk"),
    pytest.param(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", b"hello world", id="two chunks"),
    pytest.param(b"00a\r\n0123456789\r\n000\r\n\r\n", b"0123456789", id="leading zeros"),
    pytest.param(b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789", id="upper case size"),
    pytest.param(b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", id="data that looks like framing"),
    pytest.param(b'1;a=b;c="d e"\r\nx\r\n0;z\r\n\r\n', b"x", id="extensions are skipped"),
    pytest.param(b"1\r\nx\r\n0\r\nA: b\r\nC-d:\r\n\r\n", b"x", id="trailers are dropped"),
]


@pytest.mark.parametrize(("wire", "body"), WHOLE)
def test_a_chunked_body_is_the_same_in_any_two_cuts(wire, body):
    for cut in range(len(wire) + 1):
        pieces = [one for one in (wire[:cut], wire[cut:]) if one]

        assert walk(Chunked(), *pieces) == (body, True, "", False)


@pytest.mark.parametrize(("wire", "body"), WHOLE)
def test_a_chunked_body_is_the_same_byte_by_byte(wire, body):
    assert walk(Chunked(), *byte_by_byte(wire)) == (body, True, "", False)


@pytest.mark.parametrize(("wire", "body"), WHOLE)
def test_a_chunked_body_that_is_cut_anywhere_is_not_done(wire, body):
    for cut in range(len(wire)):
        framing = Chunked()
        part = framing.feed(wire[:cut]) if cut else b""

        assert body.startswith(part)
        assert (framing.done, framing.flaw) == (False, "")


MALFORMED = [
    pytest.param(b"zz\r\n", b"", "chunk size", id="no digits"),
    pytest.param(b"\r\n", b"", "chunk size", id="empty size"),
    pytest.param(b" 5\r\nhello\r\n", b"", "chunk size", id="space before the size"),
    pytest.param(b"5 \r\nhello\r\n", b"", "chunk size", id="space behind the size"),
    pytest.param(b"+5\r\nhello\r\n", b"", "chunk size", id="sign"),
    pytest.param(b"-5\r\nhello\r\n", b"", "chunk size", id="negative"),
    pytest.param(b"0x5\r\nhello\r\n", b"", "chunk size", id="0x"),
    pytest.param(b"1_0\r\n", b"", "chunk size", id="underscore"),
    pytest.param(b"5\nhello\n", b"", "chunk size", id="size line ended by LF alone"),
    pytest.param(b"5;a\nb\r\n", b"", "chunk size", id="LF in an extension"),
    pytest.param(b"5;a\rb\r\n", b"", "chunk size", id="CR in an extension"),
    pytest.param(b"5;a\0b\r\n", b"", "chunk size", id="NUL in an extension"),
    pytest.param(b"f" * 16 + b"\r\n", b"", "chunk size", id="size too long"),
    pytest.param(b"5;%s\r\n" % (b"x" * (MAX_EXTENSION + 1)), b"", "chunk size", id="extension"),
    pytest.param(b"5\r\nhello!\r\n", b"hello", "chunk end", id="more data than said"),
    pytest.param(b"5\r\nhello\n0\r\n\r\n", b"hello", "chunk end", id="chunk ended by LF alone"),
    pytest.param(b"5\r\nhello\rX", b"hello", "chunk end", id="CR without LF"),
    pytest.param(b"3\r\nabc\r\nxyz\r\n", b"abc", "chunk size", id="second chunk"),
    pytest.param(b"0\r\nno colon\r\n\r\n", b"", "trailers", id="trailer without a colon"),
    pytest.param(b"0\r\na: b\nc: d\r\n\r\n", b"", "trailers", id="LF in a trailer"),
    pytest.param(b"0\r\n a: b\r\n\r\n", b"", "trailers", id="folded trailer"),
    pytest.param(b"0\r\na: %s" % (b"x" * MAX_TRAILERS), b"", "trailers", id="trailers too long"),
]


@pytest.mark.parametrize(("wire", "body", "flaw"), MALFORMED)
def test_a_malformed_body_gives_what_came_before_the_flaw_in_any_cut(wire, body, flaw):
    assert walk(Chunked(), wire) == (body, False, flaw, False)
    assert walk(Chunked(), *byte_by_byte(wire)) == (body, False, flaw, False)


def test_trailers_that_are_whole_but_too_long_are_a_flaw():
    wire = b"0\r\na: %s\r\n\r\n" % (b"x" * MAX_TRAILERS)

    assert walk(Chunked(), wire)[1:] == (False, "trailers", False)


def test_the_longest_extension_and_the_longest_trailers_pass():
    extension = b";" + b"x" * MAX_EXTENSION
    trailers = b"a: %s\r\n\r\n" % (b"x" * (MAX_TRAILERS - 7))

    assert walk(Chunked(), b"1%s\r\nx\r\n0\r\n" % extension, trailers)[:2] == (b"x", True)


@pytest.mark.parametrize("tail", [b"H", b"\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_bytes_behind_the_last_chunk_are_surplus(tail):
    wire = b"1\r\nx\r\n0\r\n\r\n" + tail

    assert walk(Chunked(), wire) == (b"x", True, "", True)


def test_a_read_inside_a_big_chunk_is_passed_on_without_a_copy():
    framing, data = Chunked(), b"x" * 1000
    framing.feed(b"ffff\r\n")

    assert framing.feed(data) is data


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_any_chunks_in_any_cuts_give_the_body_back(chunks, cuts):
    wire = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
    marks = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    pieces = [wire[a:b] for a, b in pairwise(marks)]

    assert walk(Chunked(), *pieces) == (b"".join(chunks), True, "", False)


SHARDS = st.sampled_from(
    [b"0", b"1", b"2", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b";", b"a:", b"xy"]
)


@given(st.lists(SHARDS, min_size=1, max_size=12), st.integers(1, 20))
def test_noise_is_judged_the_same_in_any_cut(shards, cut):
    noise = b"".join(shards)
    pieces = [one for one in (noise[:cut], noise[cut:]) if one]

    assert walk(Chunked(), *pieces) == walk(Chunked(), noise)


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        pytest.param([b"hello"], (b"hello", True, "", False), id="in one read"),
        pytest.param([b"he", b"llo"], (b"hello", True, "", False), id="in two"),
        pytest.param([b"hell"], (b"hell", False, "", False), id="cut"),
        pytest.param([b"hello!"], (b"hello", True, "", True), id="surplus in the same read"),
        pytest.param([b"hel", b"lo!"], (b"hello", True, "", True), id="surplus in a later one"),
    ],
)
def test_a_body_of_declared_length(pieces, seen):
    assert walk(FixedLength(5), *pieces) == seen


def test_a_body_of_length_0_is_done_at_once():
    assert FixedLength(0).done


def test_a_body_until_eof_goes_on():
    assert walk(UntilEof(), b"a", b"b") == (b"ab", False, "", False)


@pytest.mark.parametrize(
    ("framing", "whole"), [(UntilEof(), True), (FixedLength(1), False), (Chunked(), False)]
)
def test_only_a_body_until_eof_is_made_whole_by_it(framing, whole):
    assert framing.until_eof is whole
