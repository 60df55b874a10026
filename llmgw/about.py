"""Which program this is: its version, how it runs, and the commit that a packed one is of."""

from __future__ import annotations

import json
from pathlib import Path

from llmgw import __version__
from llmgw.compiled import IS_COMPILED

BUILD = Path(__file__).with_name("build.json")
CODE = "compiled" if IS_COMPILED else "interpreted"


def version_line(build: Path = BUILD) -> str:
    try:
        made = json.loads(build.read_text("utf-8"))
        return f"llmgw {__version__} ({CODE}, commit {made['commit']}, {made['date']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"llmgw {__version__} ({CODE})"
