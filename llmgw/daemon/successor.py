"""An upgrade: the new program on the same sockets, and the old one gone once it is ready.

The child is started with the listening sockets and one end of a pipe. It writes a line when it
serves; if it ends before, or takes too long, the parent goes on as if nothing had been asked.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from llmgw.daemon.inherit import HANDOVER, describe, descriptors
from llmgw.daemon.sockets import Listener

READY_LINE = b"ready\n"
READY_WITHIN = 60.0
STOP_WITHIN = 5.0


class SuccessorFailed(Exception):
    """The new program did not come up."""


def own_command() -> list[str]:
    """As this process was started, from the same files: they hold the new program by now."""
    archive = os.environ.get("LLMGW_ARCHIVE")  # the one-file program: what runs was unpacked
    if archive:
        return [archive, *sys.argv[1:]]
    return [sys.executable, *sys.orig_argv[1:]]


async def start_successor(
    command: Sequence[str],
    http: Sequence[Listener],
    metrics: Sequence[Listener],
    *,
    within: float = READY_WITHIN,
) -> int:
    """The process id of a child that serves on these sockets. Raises `SuccessorFailed`."""
    reader, writer = os.pipe()
    try:
        child = _spawn(command, http, metrics, writer)  # in one step: a stop must not come between
    except OSError as error:
        os.close(reader)
        raise SuccessorFailed(error.strerror or type(error).__name__) from error
    finally:
        os.close(writer)
    try:
        await _until_ready(reader, within)
    except SuccessorFailed:
        await asyncio.to_thread(_end, child)
        raise
    except asyncio.CancelledError:  # the parent stops: nobody would know of this child
        child.terminate()
        _let_go(child)
        raise
    finally:
        os.close(reader)
    _let_go(child)
    return child.pid


def tell_ready(descriptor: int) -> None:
    """The child's side; a parent that has gone meanwhile is no fault of ours."""
    with suppress(OSError):
        os.write(descriptor, READY_LINE)
    os.close(descriptor)


def _spawn(
    command: Sequence[str], http: Sequence[Listener], metrics: Sequence[Listener], writer: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the command that started this process itself
        command,
        env={**os.environ, HANDOVER: describe(http, metrics, writer)},
        pass_fds=[*descriptors(http), *descriptors(metrics), writer],
        stdin=subprocess.DEVNULL,
    )


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """It outlives this process: there is nothing to wait for any more."""
    child.returncode = 0


async def _until_ready(reader: int, within: float) -> None:
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not heard.done():
            heard.set_result(os.read(reader, len(READY_LINE)))

    loop.add_reader(reader, read)
    try:
        async with asyncio.timeout(within):
            line = await heard
    except TimeoutError:
        raise SuccessorFailed(f"the new program was not ready within {within:g} s") from None
    finally:
        loop.remove_reader(reader)
    if line != READY_LINE:
        raise SuccessorFailed("the new program ended before it was ready; its log says why")


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_WITHIN)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
