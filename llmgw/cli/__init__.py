"""The command line: `llmgw COMMAND`. A command's module is imported only when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from llmgw.about import version_line

COMMANDS = {
    "serve": "run the gateway",
    "init": "write a configuration file for some nodes",
    "check": "check a configuration file and say all that is wrong with it",
    "config": "show or migrate a configuration file",
    "reload": "make the running gateway read its configuration again",
    "upgrade": "start the new program on the sockets of the running gateway",
    "status": "what the running gateway sees of its nodes",
    "explain": "where a request would go, and why the other assignments are out",
    "drain": "give a node no new work",
    "undrain": "let a drained node work again",
    "key": "make, list, revoke and import clients' keys",
    "usage": "who used how much, from the database",
    "admin": "make what an operator signs in with",
    "sim": "run one simulated inference node",
    "demo": "two simulated nodes, a gateway, and a failover to watch",
}
DESCRIPTION = "An LLM gateway: one address in front of inference nodes and provider accounts."
EPILOG = "`llmgw COMMAND --help` tells more of each."
READER_GONE = 128 + 13  # as shells have it for a command that SIGPIPE ended


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
        status = _load(arguments.command).run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # of `llmgw status | head -1`
        _mute()
        return READER_GONE
    return status


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llmgw", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=version_line())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        one = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            _load(name).configure(one)
    return parser


def _mute() -> None:
    """Else the interpreter complains about the same pipe again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(name: str) -> Command:
    return cast(Command, import_module(f"llmgw.cli.{name}"))
