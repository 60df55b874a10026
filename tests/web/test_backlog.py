"""What the kernel tells of a socket that nobody reads."""

import socket

import pytest

from llmgw.web.backlog import has_left, has_waiting


class Transport:
    def __init__(self, sock):
        self._sock = sock

    def get_extra_info(self, name):
        return {"socket": self._sock}[name]


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_peer_that_only_sent_has_not_left(pair):
    ours, theirs = pair
    theirs.send(b"x" * 1000)

    assert not has_left(Transport(ours))


@pytest.mark.parametrize("leave", [lambda s: s.shutdown(socket.SHUT_WR), lambda s: s.close()])
def test_a_peer_that_ended_behind_unread_bytes_has_left(pair, leave):
    ours, theirs = pair
    theirs.send(b"x" * 1000)

    leave(theirs)

    assert has_left(Transport(ours))


def test_a_closed_socket_has_been_left(pair):
    ours, _ = pair
    ours.close()

    assert has_left(Transport(ours))


def test_a_transport_without_a_socket_has_not_been_left():
    assert not has_left(Transport(None))


def test_connections_wait_until_they_are_accepted():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not has_waiting(listener)
        with socket.create_connection(listener.getsockname()):
            assert has_waiting(listener)
            listener.accept()[0].close()
            assert not has_waiting(listener)
