import socket

import pytest

from llmgw.config_file.addresses import (
    format_listen,
    is_loopback,
    is_own_address,
    parse_listen,
    reaches,
)
from llmgw.config_file.faults import Unfit
from llmgw.core.config import Listen


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        (":8000", Listen("", 8000)),
        ("*:8000", Listen("", 8000)),
        ("127.0.0.1:0", Listen("127.0.0.1", 0)),
        ("GW.internal:8000", Listen("gw.internal", 8000)),
        ("[::1]:8000", Listen("::1", 8000)),
        ("[0:0::1]:8000", Listen("::1", 8000)),
        ("unix:/run/llmgw/http.sock", Listen(path="/run/llmgw/http.sock")),
    ],
)
def test_an_address_to_listen_on(text, listen):
    assert parse_listen(text) == listen


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param("8000", '":8000"?', id="only a port"),
        pytest.param("localhost", "", id="only a host"),
        pytest.param("::1:8000", '"[::1]:8000"', id="no brackets"),
        pytest.param("[::g]:8000", "", id="no such address"),
        pytest.param("[::1\0]:8000", "", id="a zero byte"),
        pytest.param(":65536", "", id="port too high"),
        pytest.param(":0100000", "", id="port too high behind a zero"),
        pytest.param(":-1", "", id="negative port"),
        pytest.param(":", "", id="no port"),
        pytest.param(":٣", "", id="port in digits of another script"),
        pytest.param(f":{'1' * 5000}", "", id="endless port"),
        pytest.param("http://host:8000", '"[::1]:8000"', id="a URL"),
        pytest.param("a b:8000", "", id="a blank"),
        pytest.param("unix:run/x.sock", '"unix:/run/llmgw/http.sock"', id="relative path"),
        pytest.param("unix:", '"unix:/run/llmgw/http.sock"', id="no path"),
        pytest.param("unix:/" + "x" * 107, "", id="longer than the kernel takes"),
    ],
)
def test_what_is_no_address_is_refused(text, hint):
    with pytest.raises(Unfit) as refused:
        parse_listen(text)

    assert refused.value.hint == hint


@pytest.mark.parametrize("text", [":8000", "h:1", "[::1]:8000", "unix:/x"])
def test_an_address_written_out_is_the_same(text):
    assert format_listen(parse_listen(text)) == text


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("unix:/x", True),
        (":1", False),
        ("0.0.0.0:1", False),
        ("10.0.0.1:1", False),
        ("[::]:1", False),
    ],
)
def test_who_can_reach_an_address(text, private):
    assert is_loopback(parse_listen(text)) is private


@pytest.mark.parametrize(
    ("listen", "host", "arrives"),
    [
        pytest.param(":8000", "127.0.0.1", True, id="all addresses, loopback"),
        pytest.param(":8000", "LOCALHOST", True, id="all addresses, its usual name"),
        pytest.param(":8000", "::1", True, id="all addresses, IPv6"),
        pytest.param(":8000", "0.0.0.0", True, id="all addresses, the any address"),
        pytest.param(":8000", "::", True, id="all addresses, the IPv6 any address"),
        pytest.param(":8000", "me.example", True, id="all addresses, own name"),
        pytest.param(":8000", "other.example", False, id="all addresses, another name"),
        pytest.param(":8000", "198.51.100.7", False, id="all addresses, a foreign one"),
        pytest.param("0.0.0.0:8000", "127.0.0.1", True, id="all of IPv4"),
        pytest.param("0.0.0.0:8000", "::1", False, id="all of IPv4, asked by IPv6"),
        pytest.param("[::]:8000", "::1", True, id="all of IPv6"),
        pytest.param("127.0.0.1:8000", "localhost", True, id="loopback by name"),
        pytest.param("localhost:8000", "127.0.0.1", True, id="a name, loopback"),
        pytest.param("127.0.0.1:8000", "0.0.0.0", True, id="loopback, the any address"),
        pytest.param("127.0.0.1:8000", "127.0.0.2", False, id="another loopback address"),
        pytest.param("10.0.0.5:8000", "127.0.0.1", False, id="a server beside it on loopback"),
        pytest.param("10.0.0.5:8000", "10.0.0.5", True, id="its one address"),
        pytest.param("127.0.0.1:8001", "127.0.0.1", False, id="another port"),
        pytest.param("unix:/x", "127.0.0.1", False, id="a unix socket"),
    ],
)
def test_a_connection_that_arrives_at_the_listener(listen, host, arrives):
    own_names = frozenset({"me.example"})

    assert reaches(parse_listen(listen), host, 8000, own_names) is arrives


def test_a_port_that_the_system_chooses_is_nobodys():
    assert not reaches(parse_listen("127.0.0.1:0"), "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("127.0.0.7", True), ("::1", True), ("198.51.100.7", False)],
)
def test_the_addresses_of_this_machine(host, own):
    assert is_own_address(host) is own


def test_a_name_is_never_looked_up(monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("asked the resolver"))

    assert not is_own_address("node.example")


def test_an_address_without_a_route_is_not_its_own(monkeypatch):
    def unreachable(*_):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "socket", unreachable)

    assert not is_own_address("2001:db8::1")
