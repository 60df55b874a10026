"""From a file, or from the URLs of a command line, to one whole configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llmgw.config_file.faults import Fault, Note
from llmgw.core.config import Config, KeyConfig


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and what was seen while it was read."""

    config: Config
    notes: tuple[Note, ...]
    digest: str  # the first 12 hex digits of the SHA-256 of the file's bytes
    keys_file: Path  # where `keys.toml` lies, whether or not it exists
    database_url: str  # `database.url`, or SQLite in the state folder
    keys: tuple[KeyConfig, ...] = ()  # of [auth] and of the keys file together
    keys_faults: tuple[Fault, ...] = ()  # of the keys file: it then closes and brings no key
    is_open: bool = False  # neither an [auth] section nor a keys file: every client is let in


def load(
    path: Path, *, environ: Mapping[str, str], state_dir: Path | None = None
) -> Loaded:
    """Read the file at `path`; raises `ConfigError` with all its faults.

    Blocks on the disk. `state_dir` says where the default database lies; without it
    `state_folder(environ)` does.
    """
    raise NotImplementedError


def config_for_nodes(
    urls: Sequence[str], *, environ: Mapping[str, str] | None = None, **overrides: object
) -> Loaded:
    """The configuration of `serve --node URL`, without a file and validated like one.

    `overrides` are keys of [gateway] in their written form: `listen="127.0.0.1:0"`.
    Raises `ConfigError`.
    """
    raise NotImplementedError


def state_folder(environ: Mapping[str, str]) -> Path:
    """systemd's `STATE_DIRECTORY` (the first of a list), else `~/.local/state/llmgw`."""
    raise NotImplementedError
