"""The keys file as the command line edits it: read whole, checked whole, replaced whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import tomli_w

from llmgw.config_file.faults import ConfigError, Fault, FileMissing, Report
from llmgw.config_file.keys import load_keys, read_key_tables
from llmgw.config_file.reading import Raw
from llmgw.config_file.source import parse_toml, read_file
from llmgw.config_file.written import KEYS_FILE
from llmgw.core.config import KeyConfig
from llmgw.core.types import CLUSTER

NEW_FILE_MODE: Final = 0o640
COMMENT: Final = "# Written by `llmgw key`; the gateway looks at it every second.\n\n"


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Where the keys of a configuration lie, and what its pools are called.

    No more is read of the configuration, but for the keys that it holds itself: its secrets may
    be out of reach of whoever makes keys.
    """

    config: Path
    path: Path
    pools: frozenset[str]
    besides: tuple[KeyConfig, ...] = ()  # those of the configuration, which must be others

    @classmethod
    def of(cls, config: Path) -> KeyFile:
        """Raises `ConfigError`."""
        root = parse_toml(read_file(config), config)
        auth = _table(root, "auth")
        named = auth.get("keys_file")
        path = config.parent / (named if isinstance(named, str) else KEYS_FILE)
        pools = root.get("pools")
        tables = pools if isinstance(pools, list) else []
        names = frozenset(str(one["name"]) for one in tables if _has_name(one))
        own = read_key_tables(auth, Report())  # its faults are for `llmgw check`
        besides = tuple(row.value for row in own)
        return cls(config, path, names or frozenset({CLUSTER}), besides)

    def rows(self) -> list[Raw]:
        """The tables as they stand in the file; none where there is no file."""
        try:
            root = parse_toml(read_file(self.path), self.path)
        except FileMissing:
            return []
        rows = _table(root, "auth").get("keys", [])
        return [row for row in rows if isinstance(row, dict)]

    @contextmanager
    def editing(self) -> Iterator[list[Raw]]:
        """The rows, to be changed in place, and written when the block ends without an error.

        Two commands at once take turns. Raises `ConfigError`, also for what the gateway would
        refuse; the file then stays as it was.
        """
        with _turn(self.path.parent):
            load = self.rows()
            if self.path.exists():
                load_keys(self.path)
            yield load
            self._write(load)

    def _write(self, rows: Sequence[Raw]) -> None:
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        text = COMMENT + tomli_w.dumps({"auth": {"keys": list(rows)}})
        try:
            with open(fresh, "w", encoding="utf-8", opener=_private) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            load_keys(fresh, pools=self.pools, besides=self.besides)
            self._own(fresh)
            fresh.replace(self.path)
        except ConfigError as error:
            raise _without_file(error, fresh.name) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None
        finally:
            fresh.unlink(missing_ok=True)

    def _own(self, fresh: Path) -> None:
        """A file that is replaced keeps owner, group and mode; a new one belongs to whom the
        configuration belongs."""
        is_new = not self.path.exists()
        pattern = (self.config if is_new else self.path).stat()
        with suppress(PermissionError):  # only root may give files away
            os.chown(fresh, pattern.st_uid, pattern.st_gid)
        fresh.chmod(NEW_FILE_MODE if is_new else pattern.st_mode & 0o7777)


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """A lock on the folder, for the file itself is replaced."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _table(root: Raw, name: str) -> dict[str, Any]:
    found = root.get(name)
    return found if isinstance(found, dict) else {}


def _has_name(pool: object) -> bool:
    return isinstance(pool, dict) and isinstance(pool.get("name"), str)


def _without_file(error: ConfigError, name: str) -> ConfigError:
    """The place of a fault without the name of a file that nobody is to see."""
    return ConfigError(
        [replace(one, place=one.place.removeprefix(f"{name}: ")) for one in error.faults]
    )


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError([Fault("", f"{path}: can't be written: {error.strerror}")])
