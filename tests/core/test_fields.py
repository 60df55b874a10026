"""Plain header lines are read as they stand; what is not plain is left to a parser."""

import pytest

from llmgw.core.fields import LONGEST_LINE, MOST_FIELDS, plain_fields, sized


def parted(head: bytes):
    return sized(head, head.index(b"\r\n\r\n"))


@pytest.mark.parametrize(
    ("lines", "rest", "length"),
    [
        pytest.param(b"a: b\r\nContent-Length: 12\r\nc: d\r\n", b"a: b\r\nc: d", 12, id="between"),
        pytest.param(b"a: b\r\ncontent-length: 12\r\n", b"a: b", 12, id="last"),
        pytest.param(b"content-length:0\r\nc: d\r\n", b"c: d", 0, id="first"),
        pytest.param(b"content-Length:\t007 \t\r\n", b"", 7, id="padded"),
        pytest.param(b"a: b\r\n", b"a: b", None, id="none"),
        pytest.param(
            b"content-length: 1\r\ncontent-length: 2\r\n", b"content-length: 2", 1, id="the first"
        ),
    ],
)
def test_the_length_is_taken_out_and_nothing_else(lines, rest, length):
    first = b"POST / HTTP/1.1"

    assert parted(first + b"\r\n" + lines + b"\r\nbody") == (
        first + (b"\r\n" + rest if rest else b""),
        length,
    )


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"content-length: 1,2", id="two"),
        pytest.param(b"content-length: -1", id="negative"),
        pytest.param(b"content-length: +1", id="signed"),
        pytest.param(b"content-length: 0x1", id="hexadecimal"),
        pytest.param(b"content-length: 1 2", id="a gap"),
        pytest.param(b"content-length:", id="empty"),
        pytest.param(b"content-length : 1", id="a space before the colon"),
        pytest.param(b"content-length: " + b"1" * 16, id="huge"),
        pytest.param(b"content-length: \xb2", id="a digit of another kind"),
        pytest.param(b"CONTENT-LENGTH: 1", id="a case that nobody sends"),
        pytest.param(b"x-content-length: 1", id="another name"),
        pytest.param(b"a: content-length: 1", id="in a value"),
    ],
)
def test_no_other_line_tells_a_length(line):
    head = b"POST / HTTP/1.1\r\n" + line

    assert parted(head + b"\r\n\r\n") == (head, None)


def test_what_stands_behind_the_head_is_not_looked_at():
    assert parted(b"POST / HTTP/1.1\r\n\r\ncontent-length: 5\r\n\r\n") == (
        b"POST / HTTP/1.1",
        None,
    )
    assert sized(b"POST / HTTP/1.1\r\ncontent-length: 5\r", -1)[1] is None


def test_fields_are_read_with_names_in_lower_case():
    lines = [b"Host: a", b"X_Y-Z.1:  b\t c \t", b"a:b", b"a: ~!"]

    assert plain_fields(lines) == (("host", "a"), ("x_y-z.1", "b\t c"), ("a", "b"), ("a", "~!"))
    assert plain_fields([]) == ()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"a", id="no colon"),
        pytest.param(b": b", id="no name"),
        pytest.param(b"a :b", id="a space before the colon"),
        pytest.param(b" a: b", id="folded"),
        pytest.param(b"a:", id="no value"),
        pytest.param(b"a: \t", id="a blank value"),
        pytest.param(b"a: \xe9", id="another character set"),
        pytest.param(b"a: b\nc: d", id="a bare line feed"),
        pytest.param(b"a: b\rc", id="a bare carriage return"),
        pytest.param(b"a: b\0c", id="a NUL"),
        pytest.param(b"a: b\x7fc", id="a control character"),
        pytest.param(b"a" * 65 + b": b", id="a long name"),
        pytest.param(b"a: " + b"b" * LONGEST_LINE, id="a long line"),
        pytest.param(b"Content-Length: 5", id="a length"),
    ],
)
def test_one_line_that_is_not_plain_spoils_them_all(line):
    assert plain_fields([b"host: a", line]) is None


def test_lines_and_their_number_are_bounded():
    assert plain_fields([b"a: " + b"b" * (LONGEST_LINE - 3)]) is not None
    assert plain_fields([b"a: b"] * MOST_FIELDS) == (("a", "b"),) * MOST_FIELDS
    assert plain_fields([b"a: b"] * (MOST_FIELDS + 1)) is None
