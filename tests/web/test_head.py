"""Status line and header lines as bytes."""

import pytest

from llmgw.core.lines import header_lines
from llmgw.web import head
from llmgw.web.head import date_line, status_line


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (200, b"HTTP/1.1 200 OK\r\n"),
        (431, b"HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (529, b"HTTP/1.1 529 \r\n"),
    ],
)
def test_a_status_has_its_phrase_where_there_is_one(status, line):
    assert status_line(status) == line


def test_values_are_latin_1():
    assert header_lines((("x-name", "caf\xe9"),)) == b"x-name: caf\xe9\r\n"


@pytest.mark.parametrize("line", [("a\r\nb", "c"), ("a", "b\r\nc: d"), ("a", "\0"), ("a", "\n")])
def test_a_broken_line_is_refused(line):
    with pytest.raises(ValueError, match="breaks its line"):
        header_lines((line,))


def test_the_date_is_made_once_a_second(monkeypatch):
    now = [1_700_000_000.2]
    monkeypatch.setattr(head.time, "time", lambda: now[0])
    first = date_line()

    now[0] += 0.7
    same = date_line()
    now[0] += 0.2
    later = date_line()

    assert first == b"date: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
    assert same is first
    assert later == b"date: Tue, 14 Nov 2023 22:13:21 GMT\r\n"
