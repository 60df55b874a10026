"""New files of ours: never over an existing one unless that is asked for, and never by halves."""

from __future__ import annotations

import os
from pathlib import Path

from llmgw.config_file.faults import ConfigError, Fault


def write_file(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Raises `ConfigError`. A file that is replaced keeps its mode."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if not overwrite:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return
        fresh.write_text(text, "utf-8")
        if path.exists():
            fresh.chmod(path.stat().st_mode & 0o7777)
        fresh.replace(path)
    except FileExistsError:
        raise _failed(path, "exists already", "--force overwrites it") from None
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise _failed(path, f"can't be written: {error.strerror}") from None


def _failed(path: Path, message: str, hint: str = "") -> ConfigError:
    return ConfigError([Fault("", f"{path}: {message}", hint)])
