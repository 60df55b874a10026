"""Where a configuration comes from, read at the start and again at each reload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from llmgw.config_file import Loaded, config_for_nodes, load


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
