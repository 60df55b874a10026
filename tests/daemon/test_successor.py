import asyncio
import os
import signal
import sys

import pytest

from llmgw.daemon.successor import SuccessorFailed, own_command, start_successor, tell_ready
from llmgw.runtime.tasks import Supervisor

READY = """
import os, sys, time
from llmgw.daemon.inherit import take_inheritance
from llmgw.daemon.successor import tell_ready
tell_ready(take_inheritance(os.environ, os.getpid()).ready_fd)
time.sleep(30)
"""


def is_ended_by_kill(pid):
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0) == (pid, signal.SIGKILL)


def is_ended_by(number):
    """The one child there is."""
    return os.WTERMSIG(os.waitpid(-1, 0)[1]) == number


def has_children():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


SLEEP = "import time; time.sleep(30)"


def program(text):
    return [sys.executable, "-c", text]


async def test_a_child_that_is_ready_stays():
    pid = await start_successor(program(READY), [], [])

    assert is_ended_by_kill(pid)


async def test_a_child_that_ends_is_no_successor():
    with pytest.raises(SuccessorFailed, match="ended before it was ready"):
        await start_successor(program("pass"), [], [])


async def test_a_child_that_is_never_ready_is_ended():
    with pytest.raises(SuccessorFailed, match=r"not ready within 0\.2 s"):
        await start_successor(program(SLEEP), [], [], within=0.2)

    assert not has_children()


async def test_a_parent_that_stops_meanwhile_takes_the_child_along():
    supervisor = Supervisor()
    starting = supervisor.spawn("upgrade", start_successor(program(SLEEP), [], []))
    await asyncio.sleep(0.2)

    await supervisor.stop()

    assert starting.cancelled()
    assert is_ended_by(signal.SIGTERM)


async def test_a_program_that_is_gone_is_no_successor():
    with pytest.raises(SuccessorFailed, match="No such file"):
        await start_successor(["/nowhere/at/all"], [], [])


def test_a_predecessor_that_has_gone_is_no_fault_of_the_child():
    reader, writer = os.pipe()
    os.close(reader)

    tell_ready(writer)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(writer)


def test_the_command_is_the_one_that_this_process_was_started_with():
    assert own_command() == [sys.executable, *sys.orig_argv[1:]]


def test_the_one_file_program_is_started_from_its_file(monkeypatch):
    """What runs was unpacked from it; an upgrade must not run that again."""
    monkeypatch.setenv("LLMGW_ARCHIVE", "/opt/llmgw")
    monkeypatch.setattr(sys, "argv", ["__main__.py", "serve", "-c", "f"])

    assert own_command() == ["/opt/llmgw", "serve", "-c", "f"]
