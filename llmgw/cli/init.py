"""`llmgw init`: a configuration file for some nodes, with the keys that one sets next."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from llmgw.config_file import ConfigError, config_for_nodes
from llmgw.config_file.starter import starter
from llmgw.config_file.target import write_file

DEFAULT_OUTPUT = Path("llmgw.toml")
STANDARD_OUTPUT = Path("-")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", nargs="+", metavar="URL", help="as http://10.0.0.5:8000")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=DEFAULT_OUTPUT,
        help='default: %(default)s; "-" is standard output',
    )
    parser.add_argument(
        "--listen", metavar="ADDRESS", help="where clients connect; as in the file"
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def run(arguments: argparse.Namespace) -> int:
    try:
        given = {} if arguments.listen is None else {"listen": arguments.listen}
        text = starter(config_for_nodes(arguments.urls, **given).config.nodes, **given)
        if arguments.output == STANDARD_OUTPUT:
            print(text, end="")
            return 0
        write_file(arguments.output, text, overwrite=arguments.force)
    except ConfigError as error:
        for fault in error.faults:
            print(f"llmgw init: {fault}", file=sys.stderr)
        return 1
    print(f"wrote {arguments.output}; next: llmgw serve -c {arguments.output}")
    return 0
