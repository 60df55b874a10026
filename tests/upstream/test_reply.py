"""Small answers from bytes: whole, cut anywhere, bounded, and none that is not HTTP."""

import pytest

from llmgw.upstream.reply import MAX_HEAD, MAX_INTERIM, Reply, ReplyReader

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"content-length: 2\r\n\r\nhi"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def read(*pieces: bytes, max_bytes: int = 100, closed: bool = False) -> ReplyReader:
    reader = ReplyReader()
    reader.expect(max_bytes)
    for piece in pieces:
        reader.feed(piece)
    if closed:
        reader.end()
    return reader


def cuts(sent: bytes) -> list[bytes]:
    return [sent[n : n + 1] for n in range(len(sent))]


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        pytest.param(HI, Reply(200, b"hi", True), id="a length"),
        pytest.param(
            CHUNKED + b"1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", Reply(200, b"hi", True), id="chunks"
        ),
        pytest.param(
            CHUNKED + b"2;x=y\r\nhi\r\n0\r\nx: y\r\n\r\n", Reply(200, b"hi", True), id="trailers"
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", Reply(204, b"", True), id="no body"),
        pytest.param(
            b"HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n", Reply(503, b"", True), id="an error"
        ),
        pytest.param(CONTINUE + CONTINUE + HI, Reply(200, b"hi", True), id="interim answers"),
        pytest.param(
            OK + b"Content-Encoding:  GZip \r\ncontent-length: 2\r\n\r\nhi",
            Reply(200, b"hi", True, "gzip"),
            id="a coding",
        ),
    ],
)
def test_an_answer_is_the_same_in_any_cut(sent, reply):
    assert read(sent).reply == reply
    assert read(*cuts(sent)).reply == reply
    assert read(*cuts(sent)).keeps_alive


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n",
        OK + b"connection: close\r\ncontent-length: 2\r\n\r\n",
    ],
    ids=["1.0", "close"],
)
def test_a_connection_that_ends_is_not_kept(head):
    reader = read(head + b"hi")

    assert reader.reply == Reply(200, b"hi", True)
    assert not reader.keeps_alive


def test_a_reader_reads_one_answer_after_the_other():
    reader = read(HI)
    reader.expect(1)
    assert (reader.reply, reader.has_begun) == (None, False)

    reader.feed(b"HTTP/1.1 404 x\r\ncontent-length: 1\r\n\r\n!")

    assert (reader.reply, reader.keeps_alive) == (Reply(404, b"!", True), True)


class TestWithoutLength:
    def test_the_end_of_the_connection_ends_the_body(self):
        assert read(OK + b"\r\nhi", closed=True).reply == Reply(200, b"hi", True)

    @pytest.mark.parametrize(
        "sent",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(OK, id="half a head"),
            pytest.param(CONTINUE, id="an interim answer"),
            pytest.param(OK + b"content-length: 3\r\n\r\nhi", id="less than the length"),
            pytest.param(CHUNKED + b"2\r\nhi\r\n", id="no last chunk"),
        ],
    )
    def test_but_not_where_more_was_promised(self, sent):
        assert read(sent, closed=True).reply is None

    @pytest.mark.parametrize(
        ("sent", "has_head"), [(OK, False), (CONTINUE, False), (HI[:-1], True)]
    )
    def test_it_is_known_whether_the_head_came(self, sent, has_head):
        assert read(sent).has_head is has_head


class TestLimits:
    def test_a_body_at_the_limit_is_whole(self):
        assert read(HI, max_bytes=2).reply == Reply(200, b"hi", True)

    @pytest.mark.parametrize(
        "sent", [HI, CHUNKED + b"1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", OK + b"\r\nhi"]
    )
    def test_one_over_it_is_cut_and_its_connection_not_kept(self, sent):
        reader = read(*cuts(sent), max_bytes=1)

        assert reader.reply == Reply(200, b"h", False)
        assert not reader.keeps_alive

    @pytest.mark.parametrize("size", [MAX_HEAD - 100, MAX_HEAD])
    def test_a_head_is_bounded(self, size):
        head = OK + b"content-length: 0\r\nx: " + b"y" * size + b"\r\n\r\n"

        for pieces in ([head], [head[:1000], head[1000:]]):
            assert read(*pieces).is_flawed is (size == MAX_HEAD)

    def test_so_are_trailers_and_what_stands_between_chunks(self):
        trailers = [b"x: " + b"y" * 1000 + b"\r\n"] * 100
        extension = b"1;x=" + b"y" * 1000 + b"\r\nz\r\n"

        assert read(CHUNKED, b"2\r\nhi\r\n0\r\n", *trailers).is_flawed
        assert read(CHUNKED, *[extension] * 100, max_bytes=10**6).is_flawed

    def test_but_chunks_may_be_small(self):
        sent = [CHUNKED, *[b"8\r\n12345678\r\n"] * 50_000, b"0\r\n\r\n"]

        reply = read(*sent, max_bytes=10**6).reply
        assert reply is not None
        assert (len(reply.body), reply.is_whole) == (400_000, True)

    def test_interim_answers_are_bounded(self):
        assert read(CONTINUE * MAX_INTERIM + HI).reply == Reply(200, b"hi", True)
        assert read(CONTINUE * (MAX_INTERIM + 1)).is_flawed


class TestFlaws:
    @pytest.mark.parametrize(
        "sent",
        [
            pytest.param(b"CANARY\r\n\r\n", id="not HTTP"),
            pytest.param(b"RTSP/1.0 200 OK\r\n\r\n", id="another protocol"),
            pytest.param(b"\r\n" + HI, id="an empty line before it"),
            pytest.param(OK + b"content-length: x\r\n\r\n", id="a broken length"),
            pytest.param(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", id="two lengths"),
            pytest.param(
                OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n", id="both framings"
            ),
            pytest.param(CHUNKED + b"zz\r\n", id="a broken chunk"),
            pytest.param(OK + b"bad header\r\n\r\n", id="a line without a colon"),
            pytest.param(
                b"HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
                id="upgrade",
            ),
        ],
    )
    def test_what_is_not_http_is_none(self, sent):
        assert read(sent).is_flawed
        assert read(sent).reply is None

    @pytest.mark.parametrize("more", [HI, b"HTTP/1.1 2", b"CANARY"])
    def test_an_answer_that_was_not_asked_for_ends_the_connection(self, more):
        reader = read(HI + more)

        assert reader.reply == Reply(200, b"hi", True)
        assert not reader.keeps_alive
        assert not reader.is_flawed

    def test_a_reader_that_was_closed_reads_nothing(self):
        reader = ReplyReader()
        reader.close()

        reader.feed(HI)

        assert reader.is_flawed
