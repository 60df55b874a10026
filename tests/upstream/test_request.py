"""Requests as bytes, and what must never get into them."""

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.http import UpstreamRequest
from llmgw.upstream.request import render_head

URL = BaseUrl("http", "node.example", 8000)


def render(
    url: BaseUrl = URL,
    *,
    method: str = "POST",
    target: str = "/v1/x",
    headers=(),
    body: bytes = b"",
) -> bytes:
    return render_head(url, UpstreamRequest(method, target, headers, body))


def test_a_request_head_is_complete():
    head = render(headers=(("X-Case", "Kept"), ("accept", "*/*")), body=b"{}")

    assert head == (
        b"POST /v1/x HTTP/1.1\r\nhost: node.example:8000\r\nX-Case: Kept\r\naccept: */*\r\n"
        b"content-length: 2\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        pytest.param(BaseUrl("http", "a", 80), b"/v1/x", b"a", id="default port"),
        pytest.param(BaseUrl("https", "a", 443), b"/v1/x", b"a", id="default TLS port"),
        pytest.param(BaseUrl("http", "::1", 8000), b"/v1/x", b"[::1]:8000", id="IPv6"),
        pytest.param(BaseUrl("http", "a", 80, "/p/q"), b"/p/q/v1/x", b"a", id="path prefix"),
    ],
)
def test_host_and_prefix_come_from_the_base_url(url, line, host):
    lines = render(url).split(b"\r\n")

    assert lines[:2] == [b"POST %s HTTP/1.1" % line, b"host: " + host]


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("POST", b"", b"content-length: 0"),
        ("PUT", b"", b"content-length: 0"),
        ("GET", b"", None),
        ("HEAD", b"", None),
        ("DELETE", b"", None),
        ("DELETE", b"x", b"content-length: 1"),
    ],
)
def test_the_length_is_said_where_a_body_is_usual_or_there(method, body, length):
    lines = render(method=method, body=body).split(b"\r\n")

    assert [one for one in lines if one.startswith(b"content-length")] == [length] * bool(length)


def test_values_are_latin_1():
    assert b"a: \xe9\r\n" in render(headers=(("a", "\xe9"),))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"headers": (("a", "b\r\nc: d"),)}, id="line end in a value"),
        pytest.param({"headers": (("a", "b\nc"),)}, id="LF in a value"),
        pytest.param({"headers": (("a", "b\rc"),)}, id="CR in a value"),
        pytest.param({"headers": (("a", "b\0"),)}, id="NUL in a value"),
        pytest.param({"headers": (("a", "secret\u20ac"),)}, id="no latin-1"),
        pytest.param({"headers": (("a b", "c"),)}, id="space in a name"),
        pytest.param({"headers": (("a:", "c"),)}, id="colon in a name"),
        pytest.param({"headers": (("a\r\nb", "c"),)}, id="line end in a name"),
        pytest.param({"headers": (("\xe9", "c"),)}, id="name beyond ASCII"),
        pytest.param({"headers": (("", "c"),)}, id="no name"),
        pytest.param({"headers": (("x" * 65 + " ", "c"),)}, id="a long name"),
        pytest.param({"headers": (("Host", "evil"),)}, id="a second host"),
        pytest.param({"headers": (("Content-Length", "1"),)}, id="a second length"),
        pytest.param({"headers": (("transfer-encoding", "chunked"),)}, id="a coding"),
        pytest.param({"target": "/a b"}, id="space in the target"),
        pytest.param({"target": "/a\r\nx: y"}, id="line end in the target"),
        pytest.param({"method": "GET /x"}, id="space in the method"),
    ],
)
def test_what_could_be_read_as_something_else_is_refused_in_our_words(parts):
    with pytest.raises(ValueError, match="a request") as refused:
        render(**parts)

    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_long_header_name_is_sent_as_given():
    assert b"%s: 1\r\n" % (b"N" * 65) in render(headers=(("N" * 65, "1"),))
