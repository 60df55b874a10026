"""`llmgw drain`: give a node no new work, on every gateway that shares the database."""

from __future__ import annotations

import argparse
import json
import os
import sys

from llmgw.config_file.faults import Unfit
from llmgw.config_file.quantities import format_duration, parse_duration
from llmgw.daemon.control import ControlFailed, ask
from llmgw.daemon.places import find_running


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="its name, as `llmgw status` shows it")
    parser.add_argument(
        "--for", dest="lasting", metavar="DURATION", help="as 1h; default: until undrain"
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    try:
        seconds = None if arguments.lasting is None else parse_duration(arguments.lasting)
        found = ask(
            find_running(os.environ).control,
            "drain",
            node=arguments.node,
            for_seconds=seconds,
        )
    except Unfit as unfit:
        print(f"llmgw drain: --for {unfit.message}", file=sys.stderr)
        return 1
    except ControlFailed as error:
        print(f"llmgw drain: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(found))
        return 0
    end = "until `llmgw undrain`" if seconds is None else f"for {format_duration(seconds)}"
    print(f"{arguments.node} gets no new work {end}; what runs there goes on")
    return 0
