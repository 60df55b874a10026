"""What is read from memory is what llhttp reads, but for the line of the length."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmgw.core.errors import UpstreamError
from llmgw.core.fields import sized
from llmgw.upstream.familiar import Familiar, familiar
from llmgw.upstream.framing import Chunked, FixedLength
from llmgw.upstream.head import HeadReader, read_at_once

USUAL = (
    b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"Content-Length:5\r\ncontent-type: application/json \t\r\nx-empty-not:\t a  b"
)


def known(head: bytes) -> Familiar | None:
    return familiar(sized(head + b"\r\n\r\n", len(head))[0])


def test_the_usual_head_needs_no_parser():
    assert known(USUAL) == Familiar(
        200,
        (
            ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("server", "uvicorn"),
            ("content-type", "application/json"),
            ("x-empty-not", "a  b"),
        ),
        chunked=False,
    )


def test_a_head_that_comes_again_is_the_same_object():
    assert known(USUAL) is known(USUAL.replace(b":5", b": 77"))


def test_a_body_in_chunks_is_told():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nconnection: keep-alive"

    assert known(head).chunked
    assert known(head + b"\r\ntransfer-encoding: chunked") is None


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.0 200 OK", id="another version"),
        pytest.param(b"HTTP/1.1 100 Continue", id="an interim answer"),
        pytest.param(b"HTTP/1.1 600 OK", id="no status of HTTP"),
        pytest.param(b"HTTP/1.1 200", id="no reason"),
        pytest.param(b"HTTP/1.1 2000 OK", id="a long status"),
        pytest.param(b"HTTP/1.1 200 " + b"O" * 600, id="a long reason"),
        pytest.param(b"HTTP/1.1 200 OK\r\na : b", id="a space before the colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\n b: c", id="a folded line"),
        pytest.param(b"HTTP/1.1 200 OK\r\na:", id="an empty value"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: \xe9", id="another character set"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: b\nc: d", id="a bare line feed"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: b\0", id="a NUL"),
        pytest.param(b"HTTP/1.1 200 OK\r\nupgrade: h2c", id="an upgrade"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close", id="a connection that ends"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked", id="a coding"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 16, id="a huge length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 5, 5", id="two lengths"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5", id="the length twice"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\na: " + b"b" * 600, id="a long line"),
        pytest.param(b"HTTP/1.1 200 OK" + b"\r\na: b" * 65, id="many fields"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_whatever_else_there_is_goes_to_the_parser(head):
    assert known(head) is None


NAMES = st.sampled_from(
    [
        b"a",
        b"Content-Type",
        b"connection",
        b"x_y",
        b"te st",
        b"",
        b"via",
        b"upgrade",
        b"Content-Length",
        b"content-length",
        b"CONTENT-LENGTH",
        b"transfer-encoding",
    ]
)
VALUES = st.binary(max_size=12) | st.sampled_from(
    [
        b"keep-alive",
        b"close",
        b"5",
        b"0",
        b"12, 12",
        b"a, b",
        b" c\t",
        b"chunked",
        b"Chunked",
        b"x\r\ncontent-length: 3",
        b"x\r\n content-length: 3",
        b"007",
        b"-1",
    ]
)
LINES = st.tuples(NAMES, st.sampled_from([b":", b": ", b":\t", b" :"]), VALUES).map(b"".join)
STATUS = st.sampled_from([b"200 OK", b"503 x", b"404 ", b"204 No", b"304 No", b"101 x", b"200"])


@given(
    st.lists(LINES, max_size=5), STATUS, st.sampled_from(["POST", "HEAD"]), st.binary(max_size=5)
)
@example([b"content-length: 5"], b"200 OK", "POST", b"hello")
@example([b"transfer-encoding: chunked"], b"200 OK", "POST", b"")
@example([b"content-length: 5", b"transfer-encoding: chunked"], b"200 OK", "POST", b"")
def test_what_is_taken_at_once_is_what_the_parser_says(lines, status, method, behind):
    wire = b"\r\n".join([b"HTTP/1.1 " + status, *lines]) + b"\r\n\r\n" + behind

    taken, rest = read_at_once(wire, bodiless=method == "HEAD")

    if taken is None:
        assert rest == wire
        return
    parsed, left = by_parser(wire, method)
    assert parsed is not None, "the parser refuses it"
    assert taken.head.status == parsed.head.status
    assert taken.head.headers == tuple(
        line for line in parsed.head.headers if line[0] != "content-length"
    )
    assert taken.head.length == parsed.head.length
    assert type(taken.framing) is type(parsed.framing)
    assert taken.framing.done == parsed.framing.done
    assert taken.keeps_alive == parsed.keeps_alive
    assert rest == left


def by_parser(wire, method):
    """A head in two pieces is no head at once."""
    reader = HeadReader(method)
    try:
        reader.feed(wire[:1])
        left = reader.feed(wire[1:])
    except UpstreamError:
        return None, b""
    return reader.answer, left


def test_most_of_what_is_generated_is_told_apart():
    """Else the test above would say nothing."""
    plain = b"HTTP/1.1 200 OK\r\na: b\r\n"

    assert isinstance(
        read_at_once(plain + b"content-length: 5\r\n\r\nhello")[0].framing, FixedLength
    )
    assert isinstance(
        read_at_once(plain + b"transfer-encoding: chunked\r\n\r\n")[0].framing, Chunked
    )
    assert read_at_once(plain + b"\r\n") == (None, plain + b"\r\n")
    assert read_at_once(plain) == (None, plain)
