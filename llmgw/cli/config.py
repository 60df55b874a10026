"""`llmgw config`: a configuration with all its defaults, or an older file in today's form."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from llmgw.config_file import ConfigError, load, render
from llmgw.config_file.migration import migrate
from llmgw.config_file.source import DEFAULT_FILE, parse_toml, read_file
from llmgw.config_file.target import write_file
from llmgw.config_file.writing import write_document


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="every key with its effective value, secrets masked")
    show.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        default=DEFAULT_FILE,
        help="default: %(default)s",
    )
    show.add_argument("--json", action="store_true", help="as one JSON object")
    older = actions.add_parser("migrate", help="an older gateway's file in today's form")
    older.add_argument("old", type=Path, metavar="OLD")
    older.add_argument("-o", "--output", type=Path, metavar="NEW", help="default: standard output")
    older.add_argument("--force", action="store_true", help="overwrite NEW")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _show(arguments) if arguments.action == "show" else _migrate(arguments)
    except ConfigError as error:
        for fault in error.faults:
            print(f"llmgw config: {fault}", file=sys.stderr)
        return 1


def _show(arguments: argparse.Namespace) -> int:
    shown = render(load(arguments.config, environ=os.environ).config)
    print(json.dumps(shown, indent=2) + "\n" if arguments.json else write_document(shown), end="")
    return 0


def _migrate(arguments: argparse.Namespace) -> int:
    """The old file must be a valid one: what is not understood can't be carried over."""
    loaded = load(arguments.old, environ=os.environ)
    root = parse_toml(read_file(arguments.old), arguments.old)
    text = write_document(migrate(root, loaded.config))
    if arguments.output is None:
        print(text, end="")
    else:
        write_file(arguments.output, text, overwrite=arguments.force)
        print(f"wrote {arguments.output}", file=sys.stderr)
    return 0
