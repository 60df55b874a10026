"""What goes out at once goes out in one write."""

import pytest

from llmgw.web.downstream import LAST_CHUNK, WholeDownstream

EVENTS = b"content-type: text/event-stream\r\n"


class Transport:
    def __init__(self):
        self.writes = []

    def write(self, data):
        self.writes.append(bytes(data))


class Connection:
    is_ending = writing_paused = False

    def __init__(self):
        self.transport = Transport()


@pytest.fixture
def connection():
    return Connection()


@pytest.fixture
def downstream(connection):
    return WholeDownstream(connection, own=b"x-request-id: r\r\n")


def test_the_head_goes_out_with_the_first_event_and_the_end_with_the_last(connection, downstream):
    downstream.cork()
    downstream.commit(200, EVENTS)
    downstream.write(b"one")
    downstream.uncork()
    downstream.write(b"two")
    downstream.cork()
    downstream.write(b"last", b"4\r\nlast\r\n")
    downstream.finish()

    first, second, third = connection.transport.writes
    assert first.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
    assert first.endswith(b"\r\n\r\n3\r\none\r\n")
    assert second == b"3\r\ntwo\r\n"
    assert third == b"4\r\nlast\r\n" + LAST_CHUNK
    assert downstream.bytes_sent == 10


def test_a_whole_stream_may_be_one_write(connection, downstream):
    downstream.cork()
    downstream.commit(200, EVENTS)
    downstream.cork()
    downstream.write(b"all")
    downstream.finish()
    downstream.uncork()

    (only,) = connection.transport.writes
    assert only.endswith(b"3\r\nall\r\n" + LAST_CHUNK)


def test_what_waits_is_not_lost_where_an_answer_is_cut(connection, downstream):
    downstream.cork()
    downstream.commit(200, EVENTS)
    downstream.write(b"some")
    downstream.cut()

    (only,) = connection.transport.writes
    assert only.endswith(b"4\r\nsome\r\n")


def test_nothing_is_written_for_a_client_that_has_left(connection, downstream):
    connection.transport = None

    downstream.cork()
    downstream.commit(200, EVENTS)
    downstream.write(b"some")
    downstream.uncork()
    downstream.finish()

    assert downstream.committed
