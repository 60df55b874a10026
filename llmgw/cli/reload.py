"""`llmgw reload`: make the running gateway read its configuration again, and say how it went.

The file is checked here first, so that all its faults are told with their places. The gateway is
signalled in any case: a file that it refuses must show in its log, its metrics and /health.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from llmgw.daemon.bulletin import read_outcome
from llmgw.daemon.places import ELSEWHERE, Places, find_running
from llmgw.runtime.reload import Outcome, Result

WITHIN = 30.0
PERIOD = 0.02


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="check this file first")
    parser.add_argument(
        "pid", nargs="?", type=int, help="the gateway's process id (default: its pid file's)"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.config is not None:
        _print_faults(arguments.config)
    places = find_running(os.environ)
    pid = arguments.pid or read_pid(places)
    if pid is None:
        return _fail(f"no gateway runs: there is no {places.pid} ({ELSEWHERE})")
    asked = time.monotonic()
    try:
        os.kill(pid, signal.SIGHUP)
    except OSError as error:
        return _fail(f"process {pid} can't be signalled: {error.strerror}")
    outcome = _wait(places, pid, asked)
    return _fail("the gateway did not say how it went") if outcome is None else _report(outcome)


def read_pid(places: Places) -> int | None:
    """The process id of the gateway that serves, as it wrote it itself."""
    try:
        return int(places.pid.read_text("ascii"))
    except (OSError, ValueError):
        return None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _print_faults(path: Path) -> None:
    from llmgw.config_file import ConfigError, load

    try:
        load(path, environ=os.environ)
    except ConfigError as error:
        for line in error.lines(path):
            print(line, file=sys.stderr)


def _wait(places: Places, pid: int, asked: float) -> Outcome | None:
    while time.monotonic() < asked + WITHIN and is_alive(pid):
        outcome = read_outcome(places.outcome)
        if outcome is not None and outcome.answers(asked):
            return outcome
        time.sleep(PERIOD)
    return None


def _report(outcome: Outcome) -> int:
    if outcome.result is Result.SUCCESS:
        print(f"reloaded (configuration {outcome.digest})")
        return 0
    return _fail("the gateway goes on as before: " + "; ".join(outcome.faults))


def _fail(reason: str) -> int:
    print(f"llmgw reload: {reason}", file=sys.stderr)
    return 1
