"""Header lines as bytes, and what a head says of its answer."""

import pytest

from llmgw.core.headers import STREAM_HEADERS, passed_on
from llmgw.core.lines import (
    MOST_FORMS,
    OWN,
    AnswerForms,
    AnswerKind,
    form_of,
    header_lines,
    is_json,
)

JSON = (("content-type", "application/json"),)


def test_lines_are_written_in_order_without_what_the_server_says_itself():
    headers = (("a", "b"), ("content-length", "5"), ("x-c", "d e"), ("a", ""), ("date", "now"))

    assert header_lines(headers) == b"a: b\r\nx-c: d e\r\na: \r\n"
    assert header_lines(()) == b""
    assert header_lines(tuple((name, "x") for name in OWN)) == b""


def test_a_value_is_latin_1():
    assert header_lines((("a", "\xe9"),)) == b"a: \xe9\r\n"


@pytest.mark.parametrize(
    "line",
    [
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\rc"),
        ("a", "b\0c"),
        ("a\r\nb", "c"),
        ("a\0", ""),
    ],
)
def test_a_line_that_would_break_is_refused(line):
    with pytest.raises(ValueError, match="breaks"):
        header_lines((("ok", "ok"), line))


def test_a_value_beyond_latin_1_is_refused():
    with pytest.raises(ValueError, match="latin-1"):
        header_lines((("a", "\u20ac"),))


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        pytest.param(JSON, AnswerKind.JSON, id="JSON"),
        pytest.param((("content-type", "application/problem+json"),), AnswerKind.JSON, id="+json"),
        pytest.param(
            (("content-type", "Application/JSON; charset=utf-8"),), AnswerKind.JSON, id="its case"
        ),
        pytest.param((("content-type", "application/x-ndjson"),), AnswerKind.OTHER, id="lines"),
        pytest.param((("content-type", "text/plain"),), AnswerKind.OTHER, id="text"),
        pytest.param((), AnswerKind.OTHER, id="nothing said"),
        pytest.param((("content-type", "text/event-stream"),), AnswerKind.EVENTS, id="events"),
        pytest.param(
            (("content-type", "Text/Event-Stream;charset=utf-8"),), AnswerKind.EVENTS, id="cased"
        ),
        pytest.param(
            (*JSON, ("content-type", "text/event-stream")), AnswerKind.JSON, id="the first counts"
        ),
        pytest.param((*JSON, ("content-encoding", "gzip")), AnswerKind.ENCODED, id="encoded"),
        pytest.param(
            (("content-type", "text/event-stream"), ("content-encoding", "br")),
            AnswerKind.ENCODED,
            id="encoded events",
        ),
        pytest.param((*JSON, ("content-encoding", " Identity ")), AnswerKind.JSON, id="as it is"),
        pytest.param((*JSON, ("content-encoding", "")), AnswerKind.JSON, id="no coding"),
    ],
)
def test_a_head_tells_the_kind_of_its_answer(headers, kind):
    assert form_of(headers, from_account=False).kind is kind


def test_a_form_has_the_lines_that_are_passed_on():
    headers = (*JSON, ("connection", "x-hop"), ("x-hop", "1"), ("x-a", "b"), ("server", "s"))

    form = form_of(headers, from_account=False)

    kept = passed_on(headers, from_account=False, stream=False)
    assert (
        form.lines == header_lines(tuple(kept)) == b"content-type: application/json\r\nx-a: b\r\n"
    )


def test_a_stream_says_what_streams_say():
    form = form_of((("content-type", "text/event-stream"),), from_account=False)

    assert form.lines == b"content-type: text/event-stream\r\n" + header_lines(STREAM_HEADERS)


def test_of_an_account_only_what_is_known_is_passed_on():
    headers = (*JSON, ("x-internal", "1"))

    assert b"x-internal" in form_of(headers, from_account=False).lines
    assert form_of(headers, from_account=True).lines == b"content-type: application/json\r\n"


def test_a_head_that_comes_again_is_looked_at_once():
    forms, headers = AnswerForms(), (*JSON, ("x-a", "b"))

    first = forms.of(headers, from_account=False)

    assert forms.of(headers, from_account=False) is first
    assert forms.of(headers, from_account=True) != first
    assert forms.of(tuple(list(headers)), from_account=False) == first


def test_a_broken_head_is_refused_each_time():
    forms, headers = AnswerForms(), (*JSON, ("a", "b\nc"))

    for _ in range(2):
        with pytest.raises(ValueError, match="breaks"):
            forms.of(headers, from_account=False)


def test_what_is_remembered_is_bounded_and_never_mistaken():
    forms = AnswerForms()
    heads = [(("x-a", str(at)),) for at in range(MOST_FORMS + 2)]

    for at, head in enumerate(heads):
        assert forms.of(head, from_account=False).lines == f"x-a: {at}\r\n".encode()
    for at in range(MOST_FORMS + 2):  # other objects, maybe with the same ids
        head = (("x-b", str(at)),)
        assert forms.of(head, from_account=False).lines == f"x-b: {at}\r\n".encode()


@pytest.mark.parametrize(
    ("content_type", "is_one"),
    [
        ("application/json", True),
        ("text/json ; charset=x", True),
        ("application/ld+JSON", True),
        ("json", False),
        ("application/jsonl", False),
        ("", False),
    ],
)
def test_one_document_is_told_by_its_media_type(content_type, is_one):
    assert is_json(content_type) is is_one
