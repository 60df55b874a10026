"""Response heads: what is understood, and what is refused."""

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.framing import Chunked, FixedLength, UntilEof
from llmgw.upstream.head import MAX_FIELDS, MAX_HEAD, MAX_INTERIM, Answer, HeadReader, judge

OK = b"HTTP/1.1 200 OK\r\n"


def read(wire: bytes, *, method: str = "POST", step: int = 0) -> tuple[Answer, bytes]:
    reader = HeadReader(method)
    rest = b""
    for at in range(0, len(wire), step or len(wire)):
        piece = wire[at : at + (step or len(wire))]
        rest += reader.feed(piece) if reader.answer is None else piece
    assert reader.answer is not None
    return reader.answer, rest


def test_a_head_is_read_and_the_body_bytes_behind_it_are_left():
    wire = OK + b"Content-Type: text/plain\r\nX-A: 1\r\nx-a:2\r\nContent-Length: 2\r\n\r\nhi"

    (head, framing, keeps_alive), rest = read(wire)

    assert head.status == 200
    assert head.headers == (
        ("content-type", "text/plain"),
        ("x-a", "1"),
        ("x-a", "2"),
    ), "its length is no line of it"
    assert head.length == 2
    assert framing.feed(rest) == b"hi"
    assert keeps_alive


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
def test_a_head_is_the_same_in_any_cut(step):
    wire = (
        b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n"
        + OK
        + b"a: \xe9 b \t\r\nempty:\r\n\r\nbody\r\n\r\n"
    )

    (head, framing, _), rest = read(wire, step=step)

    assert head.headers == (("a", "\xe9 b"), ("empty", ""))
    assert isinstance(framing, UntilEof)
    assert rest == b"body\r\n\r\n"


@pytest.mark.parametrize(
    ("fields", "method", "status", "kind", "length"),
    [
        pytest.param(b"content-length: 7\r\n", "POST", 200, FixedLength, 7, id="length"),
        pytest.param(b"transfer-encoding: chunked\r\n", "POST", 200, Chunked, None, id="chunked"),
        pytest.param(b"Transfer-Encoding: Chunked\r\n", "GET", 200, Chunked, None, id="its case"),
        pytest.param(b"", "GET", 200, UntilEof, None, id="neither: until EOF"),
        pytest.param(b"content-length: 7\r\n", "HEAD", 200, FixedLength, 0, id="HEAD"),
        pytest.param(
            b"transfer-encoding: chunked\r\n", "HEAD", 200, FixedLength, 0, id="HEAD too"
        ),
        pytest.param(b"", "POST", 204, FixedLength, 0, id="204"),
        pytest.param(b"content-length: 7\r\n", "GET", 304, FixedLength, 0, id="304"),
        pytest.param(b"content-length: 0\r\n", "POST", 200, FixedLength, 0, id="length 0"),
    ],
)
def test_the_framing_follows_from_head_and_method(fields, method, status, kind, length):
    (head, framing, _), _ = read(b"HTTP/1.1 %d Any\r\n%s\r\n" % (status, fields), method=method)

    assert type(framing) is kind
    assert head.length == length
    assert framing.done is (length == 0)


@pytest.mark.parametrize(
    ("version", "fields", "keeps_alive"),
    [
        pytest.param(b"1.1", b"", True, id="1.1"),
        pytest.param(b"1.1", b"Connection: close\r\n", False, id="1.1 close"),
        pytest.param(b"1.1", b"connection: x, CLOSE\r\n", False, id="in a list"),
        pytest.param(b"1.1", b"connection: x\r\nconnection: close\r\n", False, id="second line"),
        pytest.param(b"1.1", b"connection: keep-alive\r\n", True, id="1.1 keep-alive"),
        pytest.param(b"1.0", b"", False, id="1.0"),
        pytest.param(b"1.0", b"Connection: Keep-Alive\r\n", True, id="1.0 keep-alive"),
        pytest.param(b"1.0", b"connection: keep-alive, close\r\n", False, id="1.0 both"),
    ],
)
def test_whether_the_connection_outlives_the_answer(version, fields, keeps_alive):
    wire = b"HTTP/%s 200 OK\r\ncontent-length: 0\r\n%s\r\n" % (version, fields)

    assert read(wire)[0].keeps_alive is keeps_alive


def test_a_connection_never_outlives_a_body_that_its_end_delimits():
    assert not read(OK + b"connection: keep-alive\r\n\r\n")[0].keeps_alive


MANY = b"".join(b"h%d: x\r\n" % number for number in range(MAX_FIELDS + 1))
REFUSED = [
    pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="another protocol"),
    pytest.param(b"ICE/1.0 200 OK\r\n\r\n", id="a protocol that llhttp knows"),
    pytest.param(b"\r\n" + OK + b"\r\n", id="an empty line before the status line"),
    pytest.param(b"http/1.1 200 OK\r\n\r\n", id="lower case"),
    pytest.param(b"HTTP/2.0 200 OK\r\n\r\n", id="HTTP/2"),
    pytest.param(b"HTTP/0.9 200 OK\r\n\r\n", id="HTTP/0.9"),
    pytest.param(b"HTTP/1.1 20 OK\r\n\r\n", id="two digits"),
    pytest.param(b"HTTP/1.1 999 OK\r\n\r\n", id="status above 599"),
    pytest.param(b"HTTP/1.1 000 OK\r\n\r\n", id="status 0"),
    pytest.param(
        b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", id="unasked 101"
    ),
    pytest.param(b"HTTP/1.1 101 Go\r\n\r\n", id="bare 101"),
    pytest.param(b"HTTP/1.1 200 OK\n\n", id="LF alone"),
    pytest.param(OK + b"a: b\nc: d\r\n\r\n", id="a line ended by LF alone"),
    pytest.param(OK + b"a: b\r\n c\r\n\r\n", id="folded line"),
    pytest.param(OK + b"a : b\r\n\r\n", id="space before the colon"),
    pytest.param(OK + b": b\r\n\r\n", id="no name"),
    pytest.param(OK + b"a\r\n\r\n", id="no colon"),
    pytest.param(OK + b"a: b\0\r\n\r\n", id="NUL"),
    pytest.param(OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n", id="two lengths"),
    pytest.param(OK + b"content-length: 5, 5\r\n\r\n", id="list of lengths"),
    pytest.param(OK + b"content-length: +5\r\n\r\n", id="signed length"),
    pytest.param(OK + b"content-length: -5\r\n\r\n", id="negative length"),
    pytest.param(OK + b"content-length:\r\n\r\n", id="empty length"),
    pytest.param(OK + b"content-length: %s\r\n\r\n" % (b"9" * 30), id="length overflow"),
    pytest.param(
        OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", id="length and coding"
    ),
    pytest.param(
        OK + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", id="coding and length"
    ),
    pytest.param(OK + b"transfer-encoding: gzip, chunked\r\n\r\n", id="two codings"),
    pytest.param(OK + b"transfer-encoding: gzip\r\n\r\n", id="another coding"),
    pytest.param(OK + b"transfer-encoding: xchunked\r\n\r\n", id="nearly chunked"),
    pytest.param(OK + b"transfer-encoding: chunked,\r\n\r\n", id="chunked and a comma"),
    pytest.param(OK + b"transfer-encoding: identity\r\n\r\n", id="identity"),
    pytest.param(
        OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n", id="coded twice"
    ),
    pytest.param(
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", id="chunks of HTTP/1.0"
    ),
    pytest.param(OK + b"a: %s\r\n\r\n" % (b"x" * MAX_HEAD), id="too long"),
    pytest.param(OK + MANY + b"\r\n", id="too many fields"),
    pytest.param(b"HTTP/1.1 100 C\r\n\r\n" * (MAX_INTERIM + 1) + OK + b"\r\n", id="interim"),
]


@pytest.mark.parametrize("wire", REFUSED)
@pytest.mark.parametrize("step", [0, 1], ids=["whole", "byte by byte"])
def test_a_head_that_is_not_exactly_understood_is_refused(wire, step):
    with pytest.raises(UpstreamError) as refused:
        read(wire, step=step)

    assert refused.value.kind is FaultKind.INVALID


@pytest.mark.parametrize("wire", REFUSED)
def test_no_refusal_quotes_the_upstream(wire):
    with pytest.raises(UpstreamError) as refused:
        read(wire)

    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert refused.value.detail in {
        "status line",
        "head",
        "head too long",
        "too many header fields",
        "too many interim answers",
        "unasked upgrade",
        "transfer-encoding",
        "content-length",
    }


def test_a_head_without_an_end_is_refused_before_it_fills_the_memory():
    reader = HeadReader("GET")
    reader.feed(OK + b"a: ")
    reader.feed(b"x" * (MAX_HEAD - len(OK) - 3))

    with pytest.raises(UpstreamError, match="head too long"):
        reader.feed(b"x")


def test_the_largest_head_passes():
    fill = b"a: %s\r\n\r\n" % (b"x" * (MAX_HEAD - len(OK) - 7))

    assert len(read(OK + fill)[0].head.headers[0][1]) == MAX_HEAD - len(OK) - 7


def test_interim_answers_are_skipped():
    wire = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\n" + OK + b"c: d\r\n\r\n"
    )

    assert read(wire)[0].head.headers == (("c", "d"),)


def test_a_long_header_name_is_lower_cased_too():
    name = b"X-" + b"Long" * 40

    assert read(OK + name + b": 1\r\n\r\n")[0].head.headers == ((name.decode().lower(), "1"),)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param((("content-length", "5"), ("content-length", "5")), id="the same twice"),
        pytest.param((("content-length", "\xb2"),), id="a digit beyond ASCII"),
        pytest.param((("content-length", "0" * 5000 + "2"),), id="more digits than int() takes"),
        pytest.param((("content-length", "5"), ("transfer-encoding", "chunked")), id="both"),
    ],
)
def test_lengths_are_judged_without_trust_in_the_parser(headers):
    with pytest.raises(UpstreamError, match="invalid"):
        judge(200, "1.1", headers, bodiless=False)
