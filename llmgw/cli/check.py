"""`llmgw check`: all that is wrong with a configuration, and what a reload of it would change."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from llmgw.config_file import ConfigError, Fault, Loaded, Note, load
from llmgw.config_file.changes import diff, diff_rendered
from llmgw.config_file.rendering import render
from llmgw.config_file.source import DEFAULT_FILE
from llmgw.daemon.places import find_running


@dataclass(frozen=True, slots=True)
class Findings:
    """What there is to say about one file; `changes` is None where nobody asked."""

    file: Path
    errors: tuple[Fault, ...] = ()
    warnings: tuple[Note, ...] = ()
    loaded: Loaded | None = None
    changes: tuple[str, ...] | None = None

    @property
    def is_ok(self) -> bool:
        return not self.errors


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        default=DEFAULT_FILE,
        help="default: %(default)s",
    )
    parser.add_argument(
        "--diff",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="OTHER",
        help="also say what loading FILE changes: against the file OTHER, or without one against "
        "the running gateway",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1 if the file, or one that it is compared with, can't be loaded."""
    found = _check(arguments.config, arguments.diff)
    print(json.dumps(_as_json(found), indent=2) if arguments.json else "\n".join(_lines(found)))
    return 0 if found.is_ok else 1


def _check(path: Path, other: Path | None) -> Findings:
    try:
        loaded = load(path, environ=os.environ)
    except ConfigError as error:
        return Findings(path, error.faults, error.notes)
    try:
        changes = None if other is None else _changes(loaded, other)
    except ConfigError as error:
        return Findings(path, (*loaded.keys_faults, *error.faults), loaded.notes, loaded)
    return Findings(path, loaded.keys_faults, loaded.notes, loaded, changes)


def _changes(loaded: Loaded, other: Path) -> tuple[str, ...]:
    if other != Path():
        return tuple(diff(load(other, environ=os.environ).config, loaded.config))
    return tuple(diff_rendered(_running(find_running(os.environ).loaded), render(loaded.config)))


def _running(path: Path) -> dict[str, object]:
    """What the gateway wrote when it last loaded its configuration."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        message = f"no gateway runs to compare with: there is no {path}"
        raise ConfigError([Fault("", message, "--diff OTHER compares with a file")]) from None
    except (OSError, ValueError):
        raise ConfigError([Fault("", f"{path}: can't be read")]) from None
    return found if isinstance(found, dict) else {}


def _lines(found: Findings) -> list[str]:
    lines = [f"error: {one}" for one in found.errors]
    lines += [f"warning: {one}" for one in found.warnings]
    if found.changes is not None:
        lines += found.changes or ("loading it changes nothing",)
    return [*lines, f"{found.file}: {_verdict(found)}"]


def _verdict(found: Findings) -> str:
    warnings = [_count(len(found.warnings), "warning")] if found.warnings else []
    if found.errors or found.loaded is None:
        return ", ".join([_count(len(found.errors), "error"), *warnings])
    return "; ".join([f"ok, {_contents(found.loaded)}", *warnings])


def _contents(loaded: Loaded) -> str:
    config = loaded.config
    counts = {"node": config.nodes, "account": config.accounts, "pool": config.pools}
    return ", ".join(_count(len(found), noun) for noun, found in counts.items() if found)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _as_json(found: Findings) -> dict[str, object]:
    shown: dict[str, object] = {
        "file": str(found.file),
        "ok": found.is_ok,
        "digest": found.loaded.digest if found.loaded else None,
        "errors": [asdict(one) for one in found.errors],
        "warnings": [asdict(one) for one in found.warnings],
    }
    return shown if found.changes is None else shown | {"changes": list(found.changes)}
