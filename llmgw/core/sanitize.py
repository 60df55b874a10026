"""The one message of a provider that may reach its client, without what identifies anybody."""

from __future__ import annotations


def sanitize_message(message: str) -> str:
    """Cut, and with anything like a key, an e-mail address or an account's id replaced."""
    raise NotImplementedError


def sanitize_token(value: str | None) -> str | None:
    """A `code`, `type` or `param` as it came, if it looks like an identifier; else None."""
    raise NotImplementedError
