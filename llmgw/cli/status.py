"""`llmgw status`: what the running gateway sees of its nodes and of itself."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import NoReturn

from llmgw.cli.table import table
from llmgw.daemon.control import ControlFailed, ask
from llmgw.daemon.places import find_running

COLUMNS = ("name", "url", "status", "models")
WATCH_EVERY = 2.0  # seconds
SHORTEST = 0.1
CLEAR = "\x1b[H\x1b[2J"  # a terminal: to the corner, and everything away


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument(
        "--watch",
        type=_seconds,
        nargs="?",
        const=WATCH_EVERY,
        metavar="SECONDS",
        help="again and again, until Ctrl-C; with --json one object a line",
    )


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1 if no gateway answers, or if none of its nodes is healthy."""
    if arguments.watch is None:
        return _once(arguments.json)
    try:
        _watch(arguments.watch, as_json=arguments.json)
    except KeyboardInterrupt:
        return 0


def _once(as_json: bool) -> int:
    try:
        found = _ask()
    except ControlFailed as error:
        print(f"llmgw status: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2) if as_json else "\n".join(_lines(found)))
    return 1 if found.get("status") == "error" else 0


def _watch(every: float, *, as_json: bool) -> NoReturn:
    """A gateway that is away is waited for: a restart is what people watch."""
    while True:
        try:
            found = _ask()
            text = json.dumps(found) if as_json else "\n".join(_lines(found))
        except ControlFailed as error:
            text = json.dumps({"error": str(error)}) if as_json else f"llmgw status: {error}"
        clear = CLEAR if sys.stdout.isatty() and not as_json else ""
        print(clear + text, flush=True)
        time.sleep(every)


def _ask() -> dict[str, object]:
    return ask(find_running(os.environ).control, "status")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not SHORTEST <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _lines(found: dict[str, object]) -> list[str]:
    head = (
        f"{found.get('status')}: {found.get('healthy')} of {found.get('nodes')} nodes healthy, "
        f"process {found.get('pid')}, version {found.get('version')}, {found.get('state')}"
    )
    lines = [head]
    config = found.get("config")
    if isinstance(config, dict) and config.get("last_error"):
        lines.append(f"the last reload was refused: {config['last_error']}")
    details = found.get("details")
    rows = (
        [_row(one) for one in details if isinstance(one, dict)]
        if isinstance(details, list)
        else []
    )
    return lines + table([COLUMNS, *rows]) if rows else lines


def _row(detail: dict[str, object]) -> tuple[str, ...]:
    models = detail.get("models")
    listing = models if isinstance(models, dict) else {}
    standing = str(detail.get("status"))
    if detail.get("draining"):
        standing += ", draining"
    return (str(detail.get("name")), str(detail.get("url")), standing, _listing(listing))


def _listing(listing: Mapping[str, object]) -> str:
    """As `degraded: llama (timed out)`."""
    text, names = str(listing.get("state", "")), listing.get("names")
    if isinstance(names, list) and names:
        text += f": {', '.join(map(str, names))}"
    error = listing.get("last_error")
    return f"{text} ({error})" if error else text
