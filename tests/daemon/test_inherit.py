import json
import os
import socket
import subprocess
import sys

import pytest

from llmgw.core.config import Listen
from llmgw.daemon import inherit
from llmgw.daemon.inherit import (
    HANDOVER,
    Inheritance,
    InheritanceUnusable,
    describe,
    descriptors,
    take_inheritance,
)
from llmgw.daemon.sockets import Listener, open_listener

PID = 4711


@pytest.fixture
def passed(monkeypatch):
    """Descriptors in a row, as an exec leaves them; the first is where the row begins."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as two,
    ):
        base = 200
        os.dup2(one.fileno(), base)
        os.dup2(two.fileno(), base + 1)
        monkeypatch.setattr(inherit, "FIRST_FD", base)
        yield base
    for descriptor in (base, base + 1):
        try:
            os.close(descriptor)
        except OSError:
            continue


def close(inheritance):
    for one in (*inheritance.http, *inheritance.metrics):
        one.close()


def environment(**changes):
    found = {"LISTEN_FDS": "2", "LISTEN_PID": str(PID), "LISTEN_FDNAMES": "http:metrics", "A": "b"}
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


def test_names_say_which_socket_is_which(passed):
    found = take_inheritance(environment(), PID)

    assert [one.listen.host for one in found.http] == ["127.0.0.1"]
    assert [one.listen.host for one in found.metrics] == ["::1"]
    assert all(one.given for one in (*found.http, *found.metrics))
    assert not found.is_upgrade
    close(found)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(None, id="no names"),
        pytest.param("llmgw.socket:llmgw.socket", id="the unit's own name"),
        pytest.param("http", id="too few names"),
    ],
)
def test_without_a_name_of_ours_a_socket_takes_requests(passed, names):
    found = take_inheritance(environment(LISTEN_FDNAMES=names), PID)

    assert len(found.http) == 2
    close(found)


def test_the_variables_are_gone_afterwards(passed):
    given = environment()

    close(take_inheritance(given, PID))

    assert given == {"A": "b"}


def test_sockets_do_not_leak_into_later_children(passed):
    found = take_inheritance(environment(), PID)

    assert not os.get_inheritable(found.http[0].sockets[0].fileno())
    close(found)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="nothing passed"),
        pytest.param({"LISTEN_FDS": "2", "LISTEN_PID": "1"}, id="meant for another process"),
        pytest.param({"LISTEN_FDS": "many"}, id="no number"),
    ],
)
def test_nothing_is_inherited(given):
    assert take_inheritance(given, PID) == Inheritance()


def test_a_descriptor_that_is_no_socket_is_refused(monkeypatch, tmp_path):
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(inherit, "FIRST_FD", file.fileno())

        with pytest.raises(InheritanceUnusable, match="is no socket"):
            take_inheritance({"LISTEN_FDS": "1"}, PID)


def test_a_socket_that_does_not_listen_is_refused(monkeypatch):
    sock = socket.socket()
    monkeypatch.setattr(inherit, "FIRST_FD", sock.detach())

    with pytest.raises(InheritanceUnusable, match="does not listen"):
        take_inheritance({"LISTEN_FDS": "1"}, PID)


def test_a_successor_finds_what_its_predecessor_described(tmp_path):
    """Through a real process boundary, for descriptors keep their numbers only there."""
    program = (
        "import os, json; from llmgw.daemon.inherit import take_inheritance as t\n"
        "i = t(os.environ, os.getpid()); os.write(i.ready_fd, b'x')\n"
        "both = (*i.http, *i.metrics)\n"
        "print(json.dumps([[one.listen.host, one.listen.path, one.given] for one in both]))"
    )
    path = str(tmp_path / "http.sock")
    listeners = [
        Listener(Listen("a.name", 80), (socket.create_server(("127.0.0.1", 0)),), given=True),
        open_listener("gateway.listen", Listen(path=path)),
        open_listener("gateway.metrics_listen", Listen("127.0.0.1", 0)),
    ]
    reader, writer = os.pipe()
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            HANDOVER: describe(listeners[:2], listeners[2:], writer),
            "LISTEN_FDS": "9",
        },
        pass_fds=[*descriptors(listeners), writer],
        stdout=subprocess.PIPE,
        check=True,
    )
    os.close(writer)

    assert json.loads(told.stdout) == [
        ["a.name", None, True],
        ["", path, False],
        ["127.0.0.1", None, False],
    ]
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    for one in listeners:
        one.close()
