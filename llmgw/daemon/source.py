"""Where a configuration comes from, read at the start and again at each reload."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from llmgw.config_file import Loaded, config_for_nodes, load

log = logging.getLogger("llmgw")


class Source(Protocol):
    def load(self) -> Loaded:
        """Blocks on the disk; raises `ConfigError`."""

    def __str__(self) -> str:
        """Where it is, for people."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """One TOML file."""

    path: Path
    environment: Mapping[str, str]
    state_dir: Path

    def load(self) -> Loaded:
        return load(self.path, environ=self.environment, state_dir=self.state_dir)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class NodesSource:
    """The URLs of a command line, and keys of [gateway] in their written form."""

    urls: tuple[str, ...]
    state_dir: Path
    gateway: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Loaded:
        return config_for_nodes(self.urls, environ=None, state_dir=self.state_dir, **self.gateway)

    def __str__(self) -> str:
        return "the command line"


def tell_loaded(loaded: Loaded, source: Source) -> None:
    """Say in the log what is run on from now on, and what is odd about it."""
    config = loaded.config
    log.info(
        "config loaded",
        extra={
            "cluster": config.cluster.name,
            "source": str(source),
            "digest": loaded.digest,
            "nodes": len(config.nodes),
            "accounts": len(config.accounts),
        },
    )
    for note in (*loaded.notes, *loaded.keys_faults):
        log.warning("config note", extra={"note": str(note)})
