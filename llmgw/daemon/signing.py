"""The secret that admin sessions are signed with: kept, so that a restart signs nobody out."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path
from typing import Final

log = logging.getLogger("llmgw")

FILE: Final = "admin.secret"
BYTES: Final = 32


def signing_secret(state: Path) -> bytes:
    """Read it, or make it, readable by this user alone. Where it can't be kept, sessions end
    with the process."""
    path = state / FILE
    try:
        return _read(path) or _make(path)
    except OSError as error:
        log.warning("admin sessions end with this process", extra={"reason": error.strerror})
        return secrets.token_bytes(BYTES)


def _read(path: Path) -> bytes | None:
    """None where there is none, or what lies there is no secret of ours."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return None
    return found if len(found) == BYTES else None


def _make(path: Path) -> bytes:
    """Whole or not at all: of two processes that begin at once, both read what one has put."""
    secret = secrets.token_bytes(BYTES)
    draft = path.with_name(f"{FILE}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, secret)
    finally:
        os.close(descriptor)
    try:
        os.link(draft, path)
    except FileExistsError:
        kept = _read(path)
        if kept is not None:
            return kept
        os.replace(draft, path)
        return secret
    finally:
        draft.unlink(missing_ok=True)
    return secret
