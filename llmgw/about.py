"""Which program this is: its version and, in a packed one, the commit that it was built from."""

from __future__ import annotations

import json
from pathlib import Path

from llmgw import __version__

BUILD = Path(__file__).with_name("build.json")


def version_line(build: Path = BUILD) -> str:
    try:
        made = json.loads(build.read_text("utf-8"))
        return f"llmgw {__version__} (commit {made['commit']}, {made['date']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"llmgw {__version__}"
