import socket

import pytest

from llmgw.core.config import Listen
from llmgw.daemon.doors import open_change
from llmgw.daemon.sockets import ListenFailed, adopted

KEY = "gateway.listen"
ANYWHERE = Listen("127.0.0.1", 0)


def change_to(*wanted, current=()):
    return open_change(KEY, current, wanted)


def bound(listener):
    """The address that a listener on port 0 got."""
    return Listen("127.0.0.1", listener.sockets[0].getsockname()[1])


@pytest.fixture
def given():
    """A socket as the service manager passes one."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield adopted(sock, given=True)


@pytest.fixture
def other():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield adopted(sock, given=False)


def test_an_address_that_stays_keeps_its_socket(other):
    change = change_to(other.listen, current=[other])

    assert change.kept == (other,)
    assert change.opened == change.dropped == ()


def test_a_new_address_is_open_before_the_old_is_closed(other):
    change = change_to(ANYWHERE, current=[other])

    assert [one.listen for one in change.opened] == [ANYWHERE]
    assert change.dropped == (other,)
    assert other.sockets[0].fileno() > 0
    change.undo()


def test_a_narrower_address_on_the_same_port_can_be_bound_beside_the_old():
    wide = change_to(Listen(port=0)).opened[0]
    wide = adopted(wide.sockets[0], given=False)
    narrow = Listen("127.0.0.1", wide.listen.port)

    change = change_to(narrow, current=[wide])

    assert [one.listen for one in change.opened] == [narrow]
    change.undo()
    wide.close()


def test_what_the_service_manager_gave_serves_whether_listed_or_not(given):
    listed = change_to(given.listen, current=[given])
    unlisted = change_to(ANYWHERE, current=[given])

    assert listed.serving == (given,)
    assert unlisted.kept == (given,)
    assert unlisted.dropped == ()
    unlisted.undo()


def test_a_taken_address_leaves_nothing_open(other):
    fresh = Listen("127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Listen("127.0.0.1", taken.getsockname()[1])

        with pytest.raises(ListenFailed):
            change_to(other.listen, fresh, address, current=[other])

    assert other.sockets[0].fileno() > 0


def test_an_address_listed_twice_is_opened_once():
    first = change_to(ANYWHERE)
    address = bound(first.opened[0])
    first.undo()

    change = change_to(address, address)

    assert len(change.opened) == 1
    change.undo()
