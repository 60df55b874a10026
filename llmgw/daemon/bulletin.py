"""Files in the runtime folder, by which the gateway tells its own commands of itself.

A folder that can't be written any more must not stop a gateway that serves: it is told in the
log, and the command that waits gives up.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

from llmgw.config_file import Loaded, render
from llmgw.daemon.places import Places, write_atomically
from llmgw.runtime.reload import Outcome, Result

log = logging.getLogger("llmgw")

LOADED_MODE = 0o640  # names and addresses of nodes are nobody else's business


class Bulletin:
    """Writes them, each whole."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def pid(self) -> None:
        self._write(self._places.pid, f"{os.getpid()}\n")

    def loaded(self, loaded: Loaded) -> None:
        """The configuration that is run on, for `llmgw check --diff`."""
        self._write(self._places.loaded, json.dumps(render(loaded.config)) + "\n", LOADED_MODE)

    def outcome(self, outcome: Outcome) -> None:
        self._write(self._places.outcome, json.dumps(_as_json(outcome)) + "\n")

    def upgrade_failed(self, reason: str) -> None:
        self._write(self._places.upgrade, f"{reason}\n")

    def take_down(self) -> None:
        """At the end: a successor has put its own process id there."""
        with suppress(OSError, ValueError):
            if int(self._places.pid.read_text("ascii")) == os.getpid():
                self._places.pid.unlink()

    def _write(self, path: Path, text: str, mode: int = 0o644) -> None:
        try:
            write_atomically(path, text, mode)
        except OSError as error:
            log.warning(
                "runtime file not written", extra={"file": path.name, "reason": error.strerror}
            )


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
