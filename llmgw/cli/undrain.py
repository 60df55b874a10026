"""`llmgw undrain`: let a drained node work again."""

from __future__ import annotations

import argparse
import json
import os
import sys

from llmgw.daemon.control import ControlFailed, ask
from llmgw.daemon.places import find_running


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="its name, as `llmgw status` shows it")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    try:
        found = ask(find_running(os.environ).control, "undrain", node=arguments.node)
    except ControlFailed as error:
        print(f"llmgw undrain: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(found))
        return 0
    was_drained = found.get("was_drained")
    print(f"{arguments.node} {'works again' if was_drained else 'was not drained'}")
    return 0
