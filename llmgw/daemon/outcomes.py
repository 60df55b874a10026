"""The outcome of the last reload as a file, for the command that asked for it."""

from __future__ import annotations

import json
from pathlib import Path

from llmgw.daemon.places import write_atomically
from llmgw.runtime.reload import Outcome, Result


def write_outcome(path: Path, outcome: Outcome) -> None:
    write_atomically(path, json.dumps(_as_json(outcome)) + "\n")


def read_outcome(path: Path) -> Outcome | None:
    """None while there is none, or none that can be read."""
    try:
        found = json.loads(path.read_text("utf-8"))
        return Outcome(
            number=int(found["number"]),
            result=Result(found["result"]),
            began=float(found["began"]),
            digest=found["digest"],
            faults=tuple(map(str, found["faults"])),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "number": outcome.number,
        "result": outcome.result.value,
        "began": outcome.began,
        "digest": outcome.digest,
        "faults": list(outcome.faults),
    }
