import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.http import ResponseHead
from llmgw.upstream.handshake import (
    MAX_REFUSAL,
    HandshakeReader,
    accept_of,
    is_accepted,
    render_upgrade,
)
from llmgw.upstream.head import MAX_HEAD

KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # of RFC 6455, section 1.3
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
REFUSAL = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 4\r\n\r\nbody"


def read(data: bytes, *, size: int | None = None) -> tuple[HandshakeReader, bytes]:
    reader, rest = HandshakeReader(), b""
    step = size or len(data)
    for at in range(0, len(data), step):
        rest += reader.feed(data[at : at + step])
    return reader, rest


def test_the_proof_is_that_of_the_standard():
    assert accept_of(KEY) == ACCEPT


def test_the_request_is_an_upgrade_with_the_callers_lines():
    url = BaseUrl("http", "h", 80, "/pre")

    head = render_upgrade(url, "/v1/x?y", (("via", "v"),), key=KEY, protocols=("a", "b"))

    assert head.decode().split("\r\n") == [
        "GET /pre/v1/x?y HTTP/1.1",
        "host: h",
        "via: v",
        "connection: Upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        f"sec-websocket-key: {KEY}",
        "sec-websocket-protocol: a, b",
        "",
        "",
    ]
    assert b"protocol" not in render_upgrade(url, "/", (), key=KEY, protocols=())


@pytest.mark.parametrize("size", [1, 7, None], ids=["byte by byte", "in pieces", "at once"])
def test_what_follows_a_101_are_frames(size):
    reader, rest = read(SWITCH + b"\x81\x01x", size=size)

    assert reader.head is not None
    assert reader.head.status == 101
    assert reader.head.header("upgrade") == "websocket"
    assert rest == b"\x81\x01x" if size is None else rest in (b"\x81\x01x", b"")


@pytest.mark.parametrize("size", [1, 7, None], ids=["byte by byte", "in pieces", "at once"])
def test_a_refusal_has_a_body(size):
    reader, rest = read(REFUSAL, size=size)

    assert reader.head is not None
    assert (reader.head.status, reader.body, reader.is_over) == (403, b"body", True)
    assert rest == b""
    assert reader.feed(b"more") == b""
    assert reader.body == b"body"


def test_a_refusal_without_a_body_is_over_with_its_head():
    reader, _ = read(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    assert reader.is_over


def test_a_refusal_may_end_with_the_connection():
    reader, _ = read(b"HTTP/1.1 403 Forbidden\r\n\r\nbody")
    assert not reader.is_over

    reader.end()

    assert reader.is_over


def test_only_so_much_of_a_refusal_is_read():
    reader, _ = read(b"HTTP/1.1 403 Forbidden\r\n\r\n" + b"x" * (MAX_REFUSAL + 1))

    assert reader.is_over


def test_interim_answers_are_skipped():
    reader, _ = read(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + REFUSAL)

    assert reader.head is not None
    assert reader.head.status == 403
    assert reader.head.header("link") is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"NONSENSE\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 101 X\r\nx: " + b"y" * MAX_HEAD, id="a head without end"),
        pytest.param(b"HTTP/1.1 100 X\r\n\r\n" * MAX_HEAD, id="answers before it without end"),
        pytest.param(
            b"HTTP/1.1 403 X\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", id="two lengths"
        ),
    ],
)
def test_what_is_no_answer_is_invalid(data):
    with pytest.raises(UpstreamError) as error:
        read(data)

    assert error.value.kind is FaultKind.INVALID


GOOD = {
    "upgrade": "WebSocket",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-accept": ACCEPT,
}


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        pytest.param({}, True, id="as asked"),
        pytest.param({"sec-websocket-protocol": "a"}, True, id="a protocol that was offered"),
        pytest.param({"sec-websocket-protocol": "b"}, False, id="another protocol"),
        pytest.param({"sec-websocket-accept": "x"}, False, id="no proof"),
        pytest.param({"upgrade": "h2c"}, False, id="another upgrade"),
        pytest.param({"connection": "close"}, False, id="no upgrade"),
        pytest.param({"sec-websocket-extensions": "x"}, False, id="an extension"),
    ],
)
def test_a_101_has_to_keep_to_what_was_asked(changes, accepted):
    head = ResponseHead(101, tuple((GOOD | changes).items()))

    assert is_accepted(head, key=KEY, offered=("a",)) is accepted
