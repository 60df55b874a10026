"""What a reload would change, in lines for people."""

from __future__ import annotations

from llmgw.core.config import Config


def diff(old: Config, new: Config) -> list[str]:
    """One line per change, empty if there is none; no line shows a secret."""
    raise NotImplementedError
