"""`llmgw upgrade`: start the new program on the sockets of the running one, which then drains."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from llmgw.cli.reload import is_alive, read_pid
from llmgw.daemon.places import ELSEWHERE, Places, find_running
from llmgw.daemon.successor import READY_WITHIN

WITHIN = READY_WITHIN + 10.0
PERIOD = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pid", nargs="?", type=int, help="the gateway's process id (default: its pid file's)"
    )


def run(arguments: argparse.Namespace) -> int:
    places = find_running(os.environ)
    pid = arguments.pid or read_pid(places)
    if pid is None:
        return _fail(f"no gateway runs: there is no {places.pid} ({ELSEWHERE})")
    places.upgrade.unlink(missing_ok=True)
    try:
        os.kill(pid, signal.SIGUSR2)
    except OSError as error:
        return _fail(f"process {pid} can't be signalled: {error.strerror}")
    return _wait(places, pid)


def _wait(places: Places, pid: int) -> int:
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        now = read_pid(places)
        if now is not None and now != pid and is_alive(now):
            print(f"process {now} serves; process {pid} finishes what it has begun")
            return 0
        if failure := _failure(places):
            return _fail(f"process {pid} goes on as before: {failure}")
        if not is_alive(pid):
            return _fail(f"process {pid} has ended")
        time.sleep(PERIOD)
    return _fail("the gateway did not say how it went")


def _failure(places: Places) -> str:
    try:
        return places.upgrade.read_text("utf-8").strip()
    except OSError:
        return ""


def _fail(reason: str) -> int:
    print(f"llmgw upgrade: {reason}", file=sys.stderr)
    return 1
