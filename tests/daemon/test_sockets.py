import socket
import stat

import pytest

from llmgw.core.config import Listen
from llmgw.daemon.sockets import (
    ListenFailed,
    adopted,
    is_same_address,
    open_listener,
    spelled,
)
from tests.fakes.patience import WITHIN

LOOPBACK = Listen("127.0.0.1", 0)


@pytest.fixture
def opened():
    """Opens listeners and closes them at the end."""
    made = []

    def open_(listen, **options):
        made.append(open_listener("gateway.listen", listen, **options))
        return made[-1]

    yield open_
    for one in made:
        one.remove()


def port_of(listener):
    return listener.sockets[0].getsockname()[1]


def reaches(family, address):
    with socket.socket(family) as caller:
        caller.settimeout(WITHIN)
        return caller.connect_ex(address) == 0


def test_a_port_alone_listens_on_both_protocols(opened):
    port = port_of(opened(Listen(port=0)))

    assert reaches(socket.AF_INET, ("127.0.0.1", port))
    if socket.has_dualstack_ipv6():
        assert reaches(socket.AF_INET6, ("::1", port))


def test_a_listener_may_share_its_port_with_a_later_one_of_this_process(opened):
    port = port_of(opened(Listen(port=0)))

    listener = opened(Listen("127.0.0.1", port), shared_ports={port})

    assert port_of(listener) == port


def test_listeners_share_their_port_by_so_reuseport(opened):
    """So that a reload may bind a new address before the old one on the same port is closed."""
    (sock,) = opened(LOOPBACK).sockets

    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 1


def test_a_port_that_another_gateway_listens_on_is_taken(opened):
    port = port_of(opened(LOOPBACK))

    with pytest.raises(ListenFailed) as failed:
        open_listener("gateway.listen", Listen("127.0.0.1", port))

    assert str(failed.value) == (
        f"gateway.listen: can't listen on 127.0.0.1:{port}: the address is in use"
    )


def test_a_host_that_does_not_exist_is_told_in_one_line():
    with pytest.raises(ListenFailed) as failed:
        open_listener("gateway.listen", Listen("no.such.host.invalid", 8000))

    assert str(failed.value).startswith(
        "gateway.listen: can't listen on no.such.host.invalid:8000"
    )
    assert "\n" not in str(failed.value)


def test_a_unix_socket_is_for_its_user_and_group(opened, tmp_path):
    path = tmp_path / "http.sock"

    opened(Listen(path=str(path)))

    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert [one.name for one in tmp_path.iterdir()] == ["http.sock"]
    assert reaches(socket.AF_UNIX, str(path))


def test_what_a_dead_process_left_is_replaced(opened, tmp_path):
    path = tmp_path / "http.sock"
    opened(Listen(path=str(path))).close()
    assert path.exists()

    opened(Listen(path=str(path)))

    assert reaches(socket.AF_UNIX, str(path))


def test_a_unix_socket_that_answers_is_taken(opened, tmp_path):
    path = tmp_path / "http.sock"
    opened(Listen(path=str(path)))

    with pytest.raises(ListenFailed, match="the address is in use"):
        open_listener("gateway.listen", Listen(path=str(path)))


def test_a_file_that_is_no_socket_is_never_removed(tmp_path):
    path = tmp_path / "http.sock"
    path.write_text("precious")

    with pytest.raises(ListenFailed, match="no socket"):
        open_listener("gateway.listen", Listen(path=str(path)))

    assert path.read_text() == "precious"


def test_removing_a_unix_listener_takes_its_file_along(opened, tmp_path):
    path = tmp_path / "http.sock"

    opened(Listen(path=str(path))).remove()

    assert not path.exists()


def test_removing_leaves_a_socket_that_a_successor_serves(opened, tmp_path):
    path = tmp_path / "http.sock"
    old = opened(Listen(path=str(path)))
    path.unlink()
    opened(Listen(path=str(path)))

    old.remove()

    assert reaches(socket.AF_UNIX, str(path))


def test_an_adopted_socket_is_known_by_its_own_address(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        listener = adopted(tcp, given=True)
        assert listener.listen == Listen("127.0.0.1", tcp.getsockname()[1])
        assert listener.given
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "a"))
        unix.listen()
        assert adopted(unix, given=False).listen == Listen(path=str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(Listen(port=80), Listen("::", 80), True, id="the wildcard by its names"),
        pytest.param(Listen(port=80), Listen("0.0.0.0", 80), True, id="the wildcard of IPv4"),
        pytest.param(Listen("a", 80), Listen("A", 80), True, id="host names in any case"),
        pytest.param(Listen("a", 80), Listen("a", 81), False, id="another port"),
        pytest.param(Listen(port=80), Listen("127.0.0.1", 80), False, id="one host is not all"),
        pytest.param(Listen(path="/a"), Listen(path="/a"), True, id="one path"),
        pytest.param(Listen(path="/a"), Listen(path="/b"), False, id="two paths"),
        pytest.param(Listen(path="/a"), Listen(), False, id="a path is no port"),
    ],
)
def test_which_spellings_are_one_address(one, other, same):
    assert is_same_address(one, other) is same


@pytest.mark.parametrize(
    ("listen", "text"),
    [
        pytest.param(Listen(port=8000), ":8000", id="all hosts"),
        pytest.param(Listen("::1", 8000), "[::1]:8000", id="IPv6"),
        pytest.param(Listen(path="/run/a"), "unix:/run/a", id="a path"),
    ],
)
def test_an_address_is_spelled_as_in_the_configuration(listen, text):
    assert spelled(listen) == text
