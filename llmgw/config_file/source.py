"""A TOML file's bytes and its tables, or one clear line about why there are none."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from llmgw.config_file.faults import ConfigError, Fault, FileMissing
from llmgw.config_file.reading import Raw

DEFAULT_FILE: Final = Path("/etc/llmgw/llmgw.toml")
MAX_BYTES: Final = 16 * 1024 * 1024


def read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FileMissing([Fault("", f"{path}: there is no such file", _advice(path))]) from None
    except OSError as error:
        raise _unusable(path, f"can't be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise _unusable(path, "is larger than 16 MiB")
    return data


def parse_toml(data: bytes, path: Path) -> Raw:
    """The parser's message is given with its line and column; it may quote one character."""
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unusable(path, f"is not UTF-8 (line {line})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unusable(path, f"is no TOML: {_syntax(error)}") from None


def _advice(path: Path) -> str:
    """For whoever named no file at all."""
    is_usual = path == DEFAULT_FILE
    return "-c FILE names another; llmgw init URL... -o FILE writes one" if is_usual else ""


def _syntax(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _unusable(path: Path, message: str) -> ConfigError:
    return ConfigError([Fault("", f"{path}: {message}")])
