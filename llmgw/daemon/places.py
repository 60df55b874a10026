"""Where a gateway keeps its state and what it shows to its own commands.

`STATE_DIRECTORY` and `RUNTIME_DIRECTORY` come from the service manager. Without them both lie
below the user's own state folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llmgw.config_file import state_folder
from llmgw.config_file.rendering import LOADED_FILE

SYSTEM_RUNTIME = Path("/run/llmgw")
ELSEWHERE = "RUNTIME_DIRECTORY names the folder of one that runs as another user"


class PlaceUnusable(Exception):
    """A folder that the gateway needs can't be written; `key` names what says where it is."""

    def __init__(self, key: str, folder: Path, reason: str) -> None:
        super().__init__(f"{key}: {folder} can't be written: {reason}")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one gateway, and the files in them that its commands know."""

    state: Path
    runtime: Path

    @property
    def pid(self) -> Path:
        return self.runtime / "llmgw.pid"

    @property
    def outcome(self) -> Path:
        return self.runtime / "reload.json"

    @property
    def upgrade(self) -> Path:
        """Why the last upgrade failed; absent when it did not."""
        return self.runtime / "upgrade.failed"

    @property
    def loaded(self) -> Path:
        """The configuration that the gateway runs on, without secrets."""
        return self.runtime / LOADED_FILE

    @property
    def control(self) -> Path:
        return self.runtime / "control.sock"


def find_places(environment: Mapping[str, str]) -> Places:
    state = state_folder(environment)
    runtime = environment.get("RUNTIME_DIRECTORY")
    return Places(state, _first(runtime) if runtime else state / "run")


def find_running(environment: Mapping[str, str]) -> Places:
    """The places of the gateway that a command speaks to: the service's, where there is one."""
    own = find_places(environment)
    if "RUNTIME_DIRECTORY" in environment or own.pid.exists():
        return own
    service = Places(own.state, SYSTEM_RUNTIME)
    return service if service.pid.exists() else own


def prepare(places: Places, *, keeps_state: bool) -> None:
    """Make the folders, and find out now whether they can be written."""
    if keeps_state:
        _writable("database.url: the state folder (STATE_DIRECTORY)", places.state, 0o700)
    _writable("RUNTIME_DIRECTORY", places.runtime, 0o755)


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a small file whole: a reader sees the old text or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.chmod(mode)
    fresh.replace(path)


def _writable(key: str, folder: Path, mode: int) -> None:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise PlaceUnusable(key, folder, error.strerror or type(error).__name__) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PlaceUnusable(key, folder, "permission denied")


def _first(folders: str) -> Path:
    """The manager lists several folders with ":" between them."""
    return Path(folders.split(":", 1)[0])
