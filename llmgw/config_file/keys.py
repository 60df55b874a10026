"""Client keys: `[[auth.keys]]` of the configuration, and the keys file of the same form."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from llmgw.core.config import KeyConfig


def load_keys(path: Path, *, pools: Collection[str] | None = None) -> tuple[KeyConfig, ...]:
    """The keys of a keys file; blocks on the disk, cheap enough for once a second.

    Raises `FileMissing` if there is none, and `ConfigError` for one that can't be read or has a
    fault; with `pools` a key of another pool is one.
    """
    raise NotImplementedError
