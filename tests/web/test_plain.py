"""A head that is read from memory is one that aiohttp's parser reads alike."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser
from hypothesis import example, given
from hypothesis import strategies as st

from llmgw.core.fields import sized
from llmgw.web.limits import HEAD_BYTES, LINE_BYTES, MAX_HEADERS
from llmgw.web.plain import LONGEST_HEAD, PlainHead, plain_head

FIRST = b"POST /v1/chat/completions?a=b&c HTTP/1.1"
HOST = b"Host: gateway"


def read(*lines: bytes) -> PlainHead | None:
    head = b"\r\n".join(lines)
    return plain_head(sized(head + b"\r\n\r\n", len(head))[0])


def test_the_usual_head_needs_no_parser():
    head = read(
        FIRST, HOST, b"Authorization: Bearer x", b"content-length: 7", b"Connection: keep-alive"
    )

    assert head == PlainHead(
        "/v1/chat/completions",
        "?a=b&c",
        (("host", "gateway"), ("authorization", "Bearer x"), ("connection", "keep-alive")),
        ("host", "authorization", "connection"),
    )


def test_no_query_is_an_empty_one():
    assert read(b"POST /v1/x HTTP/1.1", HOST)[:2] == ("/v1/x", "")
    assert read(b"POST /v1/x? HTTP/1.1", HOST)[:2] == ("/v1/x", "?")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([b"GET /v1/x HTTP/1.1", HOST], id="another method"),
        pytest.param([b"POST /v1/x HTTP/1.0", HOST], id="another version"),
        pytest.param([b"POST http://a/v1/x HTTP/1.1", HOST], id="a whole URL"),
        pytest.param([b"POST /v1 /x HTTP/1.1", HOST], id="a space"),
        pytest.param([b"POST /v1/\xe9 HTTP/1.1", HOST], id="another character set"),
        pytest.param([b"", FIRST, HOST], id="an empty line first"),
        pytest.param([FIRST], id="no host"),
        pytest.param([FIRST, HOST, HOST], id="two hosts"),
        pytest.param([FIRST, HOST, b"Expect: 100-continue"], id="a client that waits"),
        pytest.param([FIRST, HOST, b"Transfer-Encoding: chunked"], id="chunks"),
        pytest.param([FIRST, HOST, b"Content-Encoding: gzip"], id="an encoded body"),
        pytest.param([FIRST, HOST, b"Upgrade: h2c"], id="an upgrade"),
        pytest.param([FIRST, HOST, b"HTTP2-Settings: x"], id="its settings"),
        pytest.param([FIRST, HOST, b"Connection: close"], id="a connection that ends"),
        pytest.param([FIRST, HOST, b"Connection: keep-alive, x"], id="a hop's own header"),
        pytest.param([FIRST, HOST, b"Content-Length: 1", b"Content-Length: 1"], id="two lengths"),
        pytest.param([FIRST, HOST, b"a:"], id="an empty value"),
        pytest.param([FIRST, HOST, b"a: b", b"A: b"], id="a name twice"),
    ],
)
def test_whatever_else_there_is_goes_to_the_parser(lines):
    assert read(*lines) is None


def test_a_head_is_as_long_as_is_worth_keeping():
    whole = b"\r\n".join((FIRST, HOST, *[b"a%d: " % at + b"b" * 400 for at in range(9)]))
    rest = LONGEST_HEAD - len(whole)

    assert plain_head(whole + b"\r\nb: " + b"c" * (rest - 5)) is not None
    assert plain_head(whole + b"\r\nb: " + b"c" * (rest - 4)) is None


class Transport(asyncio.Transport):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def parsed(head: bytes, body: bytes = b""):
    """By the parser of a client connection; None where it refuses."""
    loop = asyncio.new_event_loop()
    try:
        protocol = BaseProtocol(loop)
        protocol.transport = Transport()
        parser = HttpRequestParser(
            protocol,
            loop,
            2**16,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            max_headers=MAX_HEADERS,
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
        )
        try:
            messages, upgraded, tail = parser.feed_data(head + b"\r\n\r\n" + body)
        except Exception:  # noqa: BLE001 - whichever way it refuses
            return None
        if len(messages) != 1 or upgraded or tail:
            return None
        return messages[0]
    finally:
        loop.close()


NAMES = st.sampled_from(
    [b"a", b"Content-Type", b"connection", b"x_y", b"te st", b"", b"cookie", b"host", b"upgrade"]
)
MORE_NAMES = st.sampled_from(
    [
        *(b"content-length", b"User-Agent", b"transfer-encoding", b"expect", b"content-encoding"),
        *(b"sec-websocket-key1", b"http2-settings", b"authorization", b"keep-alive", b"server"),
    ]
)
VALUES = st.binary(max_size=8) | st.sampled_from(
    [
        *(b"keep-alive", b"Keep-Alive", b"close", b"0", b"a, b", b" c\t", b"chunked", b"g:80"),
        *(b"x\r\nhost: y", b"identity", b"[::1", b"a/b"),
    ]
)
LINES = st.tuples(NAMES | MORE_NAMES, st.sampled_from([b":", b": ", b":\t", b" :"]), VALUES)
TARGETS = st.sampled_from(
    [
        b"/",
        b"/v1/x",
        b"/v1/x?y#z",
        b"//a/b",
        b"/%zz",
        b"/a b",
        b"*",
        b"/\xe9",
        b"/?",
        b"/#",
        b"/[x",
    ]
)


@given(TARGETS, st.lists(LINES.map(b"".join), max_size=5))
@example(b"/v1/x", [b"sec-websocket-key1: a"])
@example(b"/v1/x", [b"content-type: a", b"content-type: b"])
@example(b"/v1/x", [b"user-agent: a", b"User-Agent: b"])
def test_a_head_that_is_taken_is_one_that_the_parser_takes_alike(target, lines):
    head = b"\r\n".join([b"POST " + target + b" HTTP/1.1", b"host: gateway", *lines])
    rest, length = sized(head + b"\r\n\r\n", len(head))

    plain = plain_head(rest)

    if plain is None:
        return
    whole = parsed(head, b"x" * (length or 0))
    assert whole is not None, "the parser refuses it"
    message, payload = whole
    assert message.method == "POST"
    assert plain.path + plain.query == message.path
    assert plain.headers == tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in message.raw_headers
        if name.lower() != b"content-length"
    )
    assert not message.should_close
    assert not message.upgrade
    assert not message.chunked
    assert payload.is_eof()
    assert payload.total_bytes == (length or 0)


def test_the_oracle_takes_the_usual_head_and_refuses_a_broken_one():
    assert parsed(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1", b"x") is not None
    assert parsed(b"POST / HTTP/1.1\r\nhost: a\r\nb") is None
    assert LONGEST_HEAD < HEAD_BYTES
