"""Content codings of request bodies, whole, in pieces, broken and as bombs."""

import gzip
import itertools
import zlib

import brotli
import pytest
from backports import zstd

from llmgw.core.coding import STEP, decoder_for
from llmgw.core.errors import InvalidRequest, UnsupportedMedia


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS = [
    pytest.param("gzip", gzip.compress, id="gzip"),
    pytest.param("x-gzip", gzip.compress, id="gzip by its old name"),
    pytest.param("GZIP ", gzip.compress, id="gzip in capitals"),
    pytest.param("deflate", zlib.compress, id="deflate"),
    pytest.param("deflate", raw_deflate, id="deflate without its wrapper"),
    pytest.param("zstd", zstd.compress, id="zstd"),
    pytest.param("br", brotli.compress, id="brotli"),
]
TEXT = bytes(range(256)) * 40


def decode(coding: str, *pieces: bytes, **limits) -> bytes:
    decoder = decoder_for(coding, **limits)
    found = b"".join(itertools.chain.from_iterable(decoder.feed(piece) for piece in pieces))
    decoder.end()
    return found


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_is_what_was_encoded_however_it_arrives(coding, encode, size):
    data = encode(TEXT)

    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert decode(coding, *pieces) == TEXT


@pytest.mark.parametrize("length", [STEP - 1, STEP, STEP + 1, 3 * STEP])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_of_whole_steps_ends(coding, encode, length):
    assert decode(coding, encode(b"a" * length)) == b"a" * length


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_little_data_that_holds_much_comes_in_bounded_steps(coding, encode):
    bomb = encode(b"\0" * (16 * 1024 * 1024))

    parts = decoder_for(coding).feed(bomb)

    assert len(bomb) < 100_000
    assert all(len(part) <= 2 * STEP for part in itertools.islice(parts, 20))


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_coding_that_stops_early_is_refused(coding, encode):
    with pytest.raises(InvalidRequest):
        decode(coding, encode(TEXT)[:-9])


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_noise_is_refused(coding, encode):
    with pytest.raises(InvalidRequest):
        decode(coding, b"\xff" + b"this is not encoded at all")


@pytest.mark.parametrize(("coding", "encode"), CODINGS[:1] + CODINGS[5:6])
def test_several_members_are_one_body(coding, encode):
    assert decode(coding, encode(b"one ") + encode(b"two")) == b"one two"


@pytest.mark.parametrize(("coding", "encode"), CODINGS[:1] + CODINGS[5:6])
def test_members_may_be_limited(coding, encode):
    assert decode(coding, encode(b"") * 2 + encode(b"x"), members=3) == b"x"

    with pytest.raises(InvalidRequest):
        decode(coding, encode(b"") * 3 + encode(b"x"), members=3)


@pytest.mark.parametrize(("coding", "encode"), CODINGS[:1] + CODINGS[5:6])
def test_members_have_no_limit_of_their_own(coding, encode):
    assert decode(coding, encode(b"") * 20_000 + encode(b"x")) == b"x"


def test_a_window_over_8_mib_is_refused():
    options = {zstd.CompressionParameter.window_log: 27}
    packer = zstd.ZstdCompressor(options=options)
    data = packer.compress(b"a" * 1000) + packer.flush()

    with pytest.raises(InvalidRequest):
        decode("zstd", data)


@pytest.mark.parametrize("coding", [None, "", "identity"])
def test_a_body_without_a_coding_needs_no_decoder(coding):
    assert decoder_for(coding) is None


@pytest.mark.parametrize("coding", ["compress", "gzip, gzip", "lzma"])
def test_another_coding_is_refused_and_told_what_is_known(coding):
    with pytest.raises(UnsupportedMedia) as caught:
        decoder_for(coding)

    assert caught.value.headers == (("accept-encoding", "br, deflate, gzip, x-gzip, zstd"),)
