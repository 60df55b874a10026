"""`llmgw admin`: make what an operator signs in with, for `[[admin.users]]`.

A password or token is asked for or made here, and only its hash is printed for the configuration.
"""

from __future__ import annotations

import argparse
import getpass
import json
import secrets
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from llmgw.core.admin_password import SALT_BYTES, hash_password

PREFIX: Final = "llmgw-admin-"
TOKEN_BYTES: Final = 32
SHORTEST: Final = 10


class Refused(Exception):
    """One clear line."""


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    password = commands.add_parser(
        "password", help="hash a password; it is asked for, or read from standard input"
    )
    token = commands.add_parser("token", help="make a bearer token for /admin/api, shown once")
    for one in (password, token):
        one.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    try:
        ACTIONS[arguments.action](arguments)
    except Refused as refused:
        print(f"llmgw admin: {refused}", file=sys.stderr)
        return 1
    return 0


def _password(arguments: argparse.Namespace) -> None:
    password = _ask() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if len(password) < SHORTEST:
        raise Refused(f"a password needs at least {SHORTEST} characters")
    made = str(hash_password(password, secrets.token_bytes(SALT_BYTES)))
    print(json.dumps({"password": made}) if arguments.json else f'password = "{made}"')


def _token(arguments: argparse.Namespace) -> None:
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    digest = f"sha256:{sha256(token.encode()).hexdigest()}"
    if arguments.json:
        print(json.dumps({"token": token, "token_digest": digest}))
        return
    print(f'token_digest = "{digest}"')
    print(f"{token}\nthis is the only time that the token is shown", file=sys.stderr)


def _ask() -> str:
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise Refused("these were two different passwords")
    return password


ACTIONS: Final[dict[str, Callable[[argparse.Namespace], None]]] = {
    "password": _password,
    "token": _token,
}
