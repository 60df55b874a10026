"""The command line: `llmgw COMMAND`. A command's module is imported only when it is called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from llmgw.about import version_line

COMMANDS = {
    "serve": "run the gateway",
    "check": "check a configuration file and say all that is wrong with it",
    "admin": "make what an operator signs in with",
    "config": "show or migrate a configuration file",
    "init": "write a configuration file for some nodes",
    "demo": "two simulated nodes, a gateway, and a failover to watch",
    "sim": "run one simulated inference node",
    "reload": "make the running gateway read its configuration again",
    "upgrade": "start the new program on the sockets of the running gateway",
    "key": "make, list, revoke and import clients' keys",
    "explain": "where a request would go, and why the other assignments are out",
    "drain": "give a node no new work",
    "undrain": "let a drained node work again",
    "usage": "who used how much, from the database",
    "status": "what the running gateway sees of its nodes",
}


class Command(Protocol):
    """What each module `llmgw.cli.<name>` offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 refused or failed with one clear line, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(words[0] if words else None)
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        return _load(arguments.command).run(arguments)
    except KeyboardInterrupt:
        return 130


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llmgw", description=__doc__)
    parser.add_argument("--version", action="version", version=version_line())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        one = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            _load(name).configure(one)
    return parser


def _load(name: str) -> Command:
    return cast(Command, import_module(f"llmgw.cli.{name}"))
