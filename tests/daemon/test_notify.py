import os
import socket

import pytest

from llmgw.daemon.notify import Notifier, watchdog_interval


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inlet:
        inlet.bind(str(tmp_path / "notify"))
        inlet.setblocking(False)
        yield inlet


@pytest.fixture
def notifier(manager):
    return Notifier(manager.getsockname())


def heard(manager):
    return manager.recv(4096).decode().split("\n")


def test_readiness_comes_with_its_status(manager, notifier):
    notifier.ready("3 nodes")

    assert heard(manager) == ["READY=1", "STATUS=3 nodes"]


def test_a_reload_says_on_the_monotonic_clock_when_it_began(manager, notifier):
    notifier.reloading()

    first, second = heard(manager)
    assert first == "RELOADING=1"
    assert second.removeprefix("MONOTONIC_USEC=").isdecimal()


def test_a_status_stays_one_line(manager, notifier):
    notifier.status("one\nREADY=1")

    assert heard(manager) == ["STATUS=one READY=1"]


def test_a_watchdog_ping(manager, notifier):
    notifier.watchdog()

    assert heard(manager) == ["WATCHDOG=1"]


def test_stopping_comes_with_its_status(manager, notifier):
    notifier.stopping("draining")

    assert heard(manager) == ["STOPPING=1", "STATUS=draining"]


def test_after_the_main_process_changed_nothing_more_is_said(manager, notifier):
    notifier.handed_over(4711)

    assert heard(manager) == ["MAINPID=4711", "READY=1", "WATCHDOG=1"]
    notifier.stopping("draining")
    with pytest.raises(BlockingIOError):
        manager.recv(4096)


def test_an_address_of_the_abstract_namespace():
    name = f"llmgw-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inlet:
        inlet.bind("\0" + name)
        inlet.setblocking(False)

        Notifier.from_environment({"NOTIFY_SOCKET": f"@{name}"}).watchdog()

        assert inlet.recv(64) == b"WATCHDOG=1"


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="not started by a manager"),
        pytest.param({"NOTIFY_SOCKET": "/nowhere/at/all"}, id="nobody listens there"),
    ],
)
def test_a_manager_that_does_not_listen_is_no_error(environment):
    Notifier.from_environment(environment).ready("up")


@pytest.mark.parametrize(
    ("environment", "pid", "seconds"),
    [
        pytest.param({}, 7, None, id="no watchdog"),
        pytest.param({"WATCHDOG_USEC": "0"}, 7, None, id="switched off"),
        pytest.param({"WATCHDOG_USEC": "soon"}, 7, None, id="not a number"),
        pytest.param({"WATCHDOG_USEC": "30000000"}, 7, 15.0, id="half of the time"),
        pytest.param(
            {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 7, 15.0, id="meant for us"
        ),
        pytest.param(
            {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "6"}, 7, None, id="meant for another"
        ),
        pytest.param(
            {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "6"},
            None,
            15.0,
            id="an upgraded process takes over its parent's",
        ),
    ],
)
def test_how_often_the_watchdog_wants_a_sign(environment, pid, seconds):
    assert watchdog_interval(environment, pid) == seconds
