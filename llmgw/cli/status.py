"""`llmgw status`: what the running gateway sees of its nodes and of itself."""

from __future__ import annotations

import argparse
import json
import os
import sys

from llmgw.daemon.control import ControlFailed, ask
from llmgw.daemon.places import find_running

COLUMNS = ("name", "url", "status", "models")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1 if no gateway answers, or if none of its nodes is healthy."""
    try:
        found = ask(find_running(os.environ).control, "status")
    except ControlFailed as error:
        print(f"llmgw status: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(_lines(found)))
    return 1 if found.get("status") == "error" else 0


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
    return lines + _table([COLUMNS, *rows]) if rows else lines


def _row(detail: dict[str, object]) -> tuple[str, ...]:
    models = detail.get("models")
    listing = models if isinstance(models, dict) else {}
    names = listing.get("names") or []
    shown = (
        f"{listing.get('state', '')}: {', '.join(map(str, names))}"
        if names
        else listing.get("state", "")
    )
    return (str(detail.get("name")), str(detail.get("url")), str(detail.get("status")), str(shown))


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
