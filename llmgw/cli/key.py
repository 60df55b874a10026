"""`llmgw key`: make, list, revoke and import clients' keys in the keys file.

A key is shown once, when it is made; the file keeps its SHA-256. The running gateway sees a
change within a second.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

from llmgw.cli.table import table
from llmgw.config_file import ConfigError, Fault
from llmgw.config_file.faults import Unfit
from llmgw.config_file.key_file import KeyFile
from llmgw.config_file.kinds import parse_digest
from llmgw.config_file.quantities import parse_duration
from llmgw.config_file.reading import Raw
from llmgw.config_file.source import DEFAULT_FILE
from llmgw.core.policy import KEY_ID_LENGTH
from llmgw.core.types import CLUSTER

PREFIX: Final = "sk-llmgw-"
TOKEN_BYTES: Final = 32
COLUMNS: Final = ("id", "name", "pool", "models", "expires", "labels")
OPTIONS: Final = {
    "name": "--name",
    "digest": "the key",
    "pool": "--pool",
    "models": "--models",
    "labels": "--label",
    "max_in_flight": "--max-in-flight",
}

Value = TypeVar("Value")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    new = commands.add_parser("new", help="make a key and show it, once")
    _add_policy(new)
    listing = commands.add_parser("list", help="the keys of the keys file, without the secrets")
    revoke = commands.add_parser("revoke", help="take a key out of the keys file")
    revoke.add_argument("key", metavar="NAME|ID", help="as `llmgw key list` shows it")
    imported = commands.add_parser("import", help="admit a key that clients have already")
    imported.add_argument(
        "--digest", metavar="sha256:HEX", help="instead of the key on standard input"
    )
    _add_policy(imported)
    for one in (new, listing, revoke, imported):
        one.add_argument(
            "-c",
            "--config",
            type=Path,
            default=DEFAULT_FILE,
            metavar="FILE",
            help="beside which the keys file lies; default: %(default)s",
        )
        one.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    try:
        return ACTIONS[arguments.action](arguments)
    except ConfigError as error:
        for fault in error.faults:
            print(f"llmgw key: {fault}", file=sys.stderr)
        return 1


def _add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", metavar="POOL", help=f"default: {CLUSTER}")
    parser.add_argument(
        "--models", metavar="NAMES", default="*", help="with commas between; * is any text"
    )
    parser.add_argument("--name", help="shown in logs and usage; default: made from its id")
    parser.add_argument("--expires", metavar="DURATION", help="from now on, as 90d")
    parser.add_argument("--label", action="append", default=[], metavar="K=V", help="repeat")
    parser.add_argument("--max-in-flight", type=int, metavar="N", help="requests at once")


def _new(arguments: argparse.Namespace) -> int:
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = _add(arguments, _digest_of(token))
    if arguments.json:
        print(json.dumps({**_shown(row), "key": token}))
    else:
        print(token)
        print(f"{_summary(row)}; this is the only time that it is shown", file=sys.stderr)
    return 0


def _import(arguments: argparse.Namespace) -> int:
    """The key comes on standard input: an argument would be seen in the list of processes."""
    if arguments.digest is not None:
        digest = _read("--digest", parse_digest, arguments.digest)
    else:
        token = sys.stdin.readline().strip()
        if not token:
            raise _refused("", "no key on standard input")
        digest = _digest_of(token)
    row = _add(arguments, digest)
    print(json.dumps(_shown(row)) if arguments.json else _summary(row))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    rows = [_shown(row) for row in KeyFile.of(arguments.config).rows()]
    if arguments.json:
        print(json.dumps({"keys": rows}, indent=2))
    elif rows:
        cells = [tuple(_cell(row[name]) for name in COLUMNS) for row in rows]
        print("\n".join(table([COLUMNS, *cells])))
    else:
        print("no keys")
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    with KeyFile.of(arguments.config).editing() as rows:
        found = [row for row in rows if arguments.key in (row.get("name"), _id_of(row))]
        if not found:
            hint = "keys of the configuration are taken out there; see `llmgw key list`"
            raise ConfigError([Fault("", "there is no such key in the keys file", hint)])
        rows[:] = [row for row in rows if row not in found]
    shown = _shown(found[0])
    print(json.dumps({"revoked": shown}) if arguments.json else f"revoked {shown['name']}")
    return 0


ACTIONS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "new": _new,
    "import": _import,
    "list": _list,
    "revoke": _revoke,
}


def _add(arguments: argparse.Namespace, digest: str) -> Raw:
    models = [one.strip() for one in arguments.models.split(",") if one.strip()]
    if not models:
        raise _refused("--models", "must name a model, or * for all")
    row: dict[str, object] = {
        "name": arguments.name or f"key-{digest[:8]}",
        "digest": f"sha256:{digest}",
        "pool": arguments.pool or CLUSTER,
        "models": models,
    }
    if arguments.expires is not None:
        ends = time.time() + _read("--expires", parse_duration, arguments.expires)
        row["expires_at"] = datetime.fromtimestamp(int(ends), UTC)
    if arguments.label:
        row["labels"] = dict(_label(one) for one in arguments.label)
    if arguments.max_in_flight is not None:
        row["max_in_flight"] = arguments.max_in_flight
    index = 0
    try:
        with KeyFile.of(arguments.config).editing() as rows:
            index = len(rows)
            rows.append(row)
    except ConfigError as error:
        raise _as_asked(error, index) from None
    return row


def _as_asked(error: ConfigError, index: int) -> ConfigError:
    """Faults of the new row are told of the option that it has them from."""
    row = f"auth.keys[{index}]."
    named = [(one, OPTIONS.get(one.place.removeprefix(row))) for one in error.faults]
    return ConfigError([one if name is None else replace(one, place=name) for one, name in named])


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise _refused("--label", "must be NAME=VALUE")
    return name, value


def _read(place: str, parse: Callable[[object], Value], text: str) -> Value:
    try:
        return parse(text)
    except Unfit as unfit:
        raise _refused(place, unfit.message, unfit.hint) from None


def _refused(place: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError([Fault(place, message, hint)])


def _digest_of(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _id_of(row: Raw) -> str:
    return str(row.get("digest", "")).removeprefix("sha256:")[:KEY_ID_LENGTH]


def _shown(row: Raw) -> dict[str, object]:
    ends = row.get("expires_at")
    return {
        "id": _id_of(row),
        "name": row.get("name"),
        "pool": row.get("pool", CLUSTER),
        "models": row.get("models", ["*"]),
        "expires": ends.isoformat() if isinstance(ends, datetime) else ends,
        "labels": row.get("labels", {}),
    }


def _summary(row: Raw) -> str:
    return f"key {row['name']} ({_id_of(row)}) for pool {row['pool']}"


def _cell(value: object) -> str:
    match value:
        case None:
            return "never"
        case dict():
            return ", ".join(f"{name}={text}" for name, text in value.items())
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
