"""Credentials of upstreams: named in the file, read from where they lie, never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmgw.config_file.faults import Report, Unfit
from llmgw.config_file.kinds import parse_header_value
from llmgw.config_file.reading import Row
from llmgw.config_file.written import AccountTable, NodeTable
from llmgw.core.types import Headers

MAX_KEY_BYTES: Final = 64 * 1024
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def read_start(path: Path) -> bytes:
    """The beginning of a file, enough for any key. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(MAX_KEY_BYTES)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where the values of `api_key_env` and `api_key_file` are found."""

    environ: Mapping[str, str]
    folder: Path  # of the configuration: a relative path begins here
    read: Callable[[Path], bytes] = read_start

    def credential(
        self, row: Row[NodeTable] | Row[AccountTable], auth: str, report: Report
    ) -> Headers:
        """The header that carries the key; () without one, and where it can't be had."""
        table = row.value
        if table.api_key_env and table.api_key_file:
            report.fault(row.at("api_key_file"), "api_key_env is given too: only one can count")
            return ()
        key = "api_key_env" if table.api_key_env else "api_key_file"
        try:
            if table.api_key_env:
                return _header(auth, self._from_environment(table.api_key_env))
            if table.api_key_file:
                return _header(auth, self._from_file(table.api_key_file))
        except Unfit as unfit:
            report.fault(row.at(key), unfit.message, unfit.hint)
        return ()

    def _from_environment(self, name: str) -> str:
        if not _VARIABLE.fullmatch(name):  # not quoted: it may be the key itself
            raise Unfit("must be the name of an environment variable, not the key itself")
        value = self.environ.get(name, "").strip()
        if not value:
            raise Unfit(f"the environment variable {name} is not set, or empty")
        return value

    def _from_file(self, name: str) -> str:
        try:
            line = self.read(self._path(name)).partition(b"\n")[0].strip()
        except OSError as error:
            raise Unfit(f"can't be read: {error.strerror or 'unreadable'}") from None
        except ValueError:
            raise Unfit("is no path") from None
        if not line:
            raise Unfit("the first line of the file is empty")
        try:
            return line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Unfit("the first line of the file is no text") from None

    def _path(self, name: str) -> Path:
        credentials = self.environ.get("CREDENTIALS_DIRECTORY")
        if credentials and "/" not in name:
            path = Path(credentials) / name
            if path.exists():
                return path
        return self.folder / name


def _header(auth: str, key: str) -> Headers:
    """Messages never quote the key."""
    try:
        value = parse_header_value(key)
    except Unfit as unfit:
        raise Unfit(f"the key {unfit.message}") from None
    return (("authorization", f"Bearer {value}"),) if auth == "bearer" else ((auth, value),)
