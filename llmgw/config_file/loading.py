"""From a file, or from the URLs of a command line, to one whole configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmgw.config_file.assembly import parse
from llmgw.config_file.faults import ConfigError, Fault, FileMissing, Note, Report
from llmgw.config_file.keys import load_keys
from llmgw.config_file.oddities import note_open_access
from llmgw.config_file.reading import Raw
from llmgw.config_file.secrets import Secrets
from llmgw.config_file.source import parse_toml, read_file
from llmgw.core.config import Config, KeyConfig

DIGEST_DIGITS: Final = 12
DATABASE_FILE: Final = "llmgw.db"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and what was seen while it was read."""

    config: Config
    notes: tuple[Note, ...]
    digest: str  # the first 12 hex digits of the SHA-256 of the file's bytes
    keys_file: Path | None  # where the keys file is looked for; None: there is no file at all
    database_url: str  # `database.url`, or SQLite in the state folder
    keys: tuple[KeyConfig, ...] = ()  # of [auth] and of the keys file together
    keys_faults: tuple[Fault, ...] = ()  # of the keys file: it then closes and brings no key
    is_open: bool = False  # neither an [auth] section nor a keys file: every client is let in


def load(path: Path, *, environ: Mapping[str, str], state_dir: Path | None = None) -> Loaded:
    """Read the file at `path`; raises `ConfigError` with all its faults.

    Blocks on the disk. `state_dir` says where the default database lies; without it
    `state_folder(environ)` does.
    """
    data = read_file(path)
    report = Report()
    parsed = parse(parse_toml(data, path), Secrets(environ, path.parent), report)
    keys = _read_keys_file(path.parent / parsed.keys_file, parsed.config)
    return _loaded(parsed.config, data, keys, report, state_dir or state_folder(environ))


def config_for_nodes(
    urls: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    state_dir: Path | None = None,
    **gateway: object,
) -> Loaded:
    """The configuration of `serve --node URL`, without a file and validated like one.

    `gateway` holds keys of [gateway] in their written form: `listen="127.0.0.1:0"`.
    Raises `ConfigError`.
    """
    root: Raw = {"nodes": [{"url": url} for url in urls], "gateway": gateway}
    report = Report()
    parsed = parse(root, Secrets(environ or {}, Path()), report)
    state = state_dir or state_folder(environ or {})
    return _loaded(parsed.config, repr(root).encode(), _KeysFile(), report, state)


def state_folder(environ: Mapping[str, str]) -> Path:
    """systemd's `STATE_DIRECTORY` (the first of a list), else `~/.local/state/llmgw`."""
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.split(":", 1)[0])
    return Path(environ.get("HOME") or Path.home()) / ".local" / "state" / "llmgw"


@dataclass(frozen=True, slots=True)
class _KeysFile:
    """What the keys file has to say; one that is faulty exists, and so closes."""

    path: Path | None = None
    exists: bool = False
    keys: tuple[KeyConfig, ...] = ()
    faults: tuple[Fault, ...] = ()


def _read_keys_file(path: Path, config: Config) -> _KeysFile:
    own = config.auth.keys if config.auth else ()
    pools = {pool.name for pool in config.pools}
    try:
        return _KeysFile(path, True, load_keys(path, pools=pools, besides=own))
    except FileMissing:
        return _KeysFile(path)
    except ConfigError as error:
        return _KeysFile(path, True, faults=error.faults)


def _loaded(config: Config, data: bytes, file: _KeysFile, report: Report, state: Path) -> Loaded:
    is_open = config.auth is None and not file.exists
    if is_open:
        note_open_access(config.gateway.listen, report, has_file=file.path is not None)
    return Loaded(
        config=config,
        notes=tuple(report.notes),
        digest=hashlib.sha256(data).hexdigest()[:DIGEST_DIGITS],
        keys_file=file.path,
        database_url=config.database.url or f"sqlite:///{state / DATABASE_FILE}",
        keys=(*(config.auth.keys if config.auth else ()), *file.keys),
        keys_faults=file.faults,
        is_open=is_open,
    )
