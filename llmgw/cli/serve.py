"""`llmgw serve`: run the gateway, from a file or for the nodes of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from llmgw.daemon.places import find_places
from llmgw.daemon.source import FileSource, NodesSource, Source
from llmgw.daemon.start import StartRefused, prepare_launch

DEFAULT_FILE = Path("/etc/llmgw/llmgw.toml")


def configure(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help=f"default: {DEFAULT_FILE}"
    )
    source.add_argument(
        "--node", action="append", metavar="URL", help="serve this node, without a file; repeat"
    )
    for key in ("listen", "metrics-listen"):
        parser.add_argument(f"--{key}", metavar="ADDRESS", help="with --node: as in the file")


def run(arguments: argparse.Namespace) -> int:
    try:
        places = find_places(os.environ)
        launch = prepare_launch(_source(arguments, places.state), places, os.environ)
        from llmgw.daemon.compose import run as run_gateway  # after most refusals: it is heavy

        run_gateway(launch)
    except StartRefused as refused:
        for line in refused.lines:
            print(f"llmgw serve: {line}", file=sys.stderr)
        return 1
    return 0


def _source(arguments: argparse.Namespace, state_dir: Path) -> Source:
    given = {"listen": arguments.listen, "metrics_listen": arguments.metrics_listen}
    overrides = {key: value for key, value in given.items() if value is not None}
    if arguments.node:
        return NodesSource(tuple(arguments.node), state_dir, overrides)
    if overrides:
        raise StartRefused(("--listen and --metrics-listen go with --node; a file says it",))
    return FileSource(arguments.config or DEFAULT_FILE, os.environ, state_dir)
