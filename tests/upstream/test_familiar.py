"""What is read from memory is what llhttp reads."""

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.upstream.familiar import familiar_head


class Fields(list):
    def on_header(self, name, value):
        self.append((name.decode("latin-1").lower(), value.rstrip(b" \t").decode("latin-1")))


def parsed(head):
    """By llhttp; None where it refuses."""
    fields = Fields()
    parser = httptools.HttpResponseParser(fields)
    try:
        parser.feed_data(head + b"\r\n\r\n")
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    if parser.get_http_version() != "1.1":
        return None
    return parser.get_status_code(), tuple(fields)


USUAL = (
    b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"Content-Length:5\r\ncontent-type: application/json \t\r\nx-empty-not:\t a  b"
)


def test_the_usual_head_needs_no_parser():
    assert familiar_head(USUAL) == parsed(USUAL)
    assert familiar_head(USUAL)[1][2] == ("content-length", "5")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.0 200 OK", id="another version"),
        pytest.param(b"HTTP/1.1 100 Continue", id="an interim answer"),
        pytest.param(b"HTTP/1.1 200", id="no reason"),
        pytest.param(b"HTTP/1.1 2000 OK", id="a long status"),
        pytest.param(b"HTTP/1.1 200 OK\r\na : b", id="a space before the colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\n b: c", id="a folded line"),
        pytest.param(b"HTTP/1.1 200 OK\r\na:", id="an empty value"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: \xe9", id="another character set"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: b\nc: d", id="a bare line feed"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: b\0", id="a NUL"),
        pytest.param(b"HTTP/1.1 200 OK\r\nupgrade: h2c", id="an upgrade"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 16, id="a huge length"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: " + b"b" * 300, id="a long line"),
        pytest.param(b"HTTP/1.1 200 OK" + b"\r\na: b" * 65, id="many fields"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_whatever_else_there_is_goes_to_the_parser(head):
    assert familiar_head(head) is None


NAMES = st.sampled_from([b"a", b"Content-Type", b"connection", b"x_y", b"te st", b"", b"via"])
VALUES = st.binary(max_size=12) | st.sampled_from([b"keep-alive", b"5", b"a, b", b" c\t"])
LINES = st.tuples(NAMES, st.sampled_from([b":", b": ", b":\t", b" :"]), VALUES)


@given(st.lists(LINES.map(b"".join), max_size=4), st.sampled_from([b"200 OK", b"503 x", b"404 "]))
def test_a_head_that_is_taken_is_one_that_the_parser_takes_alike(lines, status):
    head = b"\r\n".join([b"HTTP/1.1 " + status, *lines])

    known = familiar_head(head)

    assert known is None or known == parsed(head)
