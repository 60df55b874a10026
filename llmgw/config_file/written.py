"""Tables as they are written, where what the gateway works with is put together from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llmgw.config_file.base_urls import GivenUrl
from llmgw.core.types import Headers, Strategy

KEYS_FILE: Final = "keys.toml"


@dataclass(frozen=True, slots=True)
class NodeTable:
    """`[[nodes]]`: either `url`, or `ip` and `vllm_port` of the older form."""

    url: GivenUrl | None = None
    name: str | None = None
    ring: str | None = None
    health_path: str = "/health"
    health: str = "on"
    metrics_port: int | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    routes: tuple[str, ...] | None = None
    websocket: bool | None = None
    drain: bool = False
    ip: str | None = None
    vllm_port: int = 8000


@dataclass(frozen=True, slots=True)
class AccountTable:
    """`[[accounts]]`."""

    name: str
    url: GivenUrl | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    auth: str = "bearer"
    headers: Headers = ()
    models: tuple[str, ...] = ()
    websocket: bool | None = None
    hide_messages: bool = False
    routes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ModelsTable:
    """`[models]` without `[[models.available]]`."""

    default: str | None = None


@dataclass(frozen=True, slots=True)
class PoolTable:
    """`[[pools]]` without its assignments."""

    name: str
    strategy: Strategy = Strategy.ROUND_ROBIN
    cache_affinity: bool = True
    max_in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class AssignmentTable:
    """`[[pools.assignments]]`."""

    upstream: str


@dataclass(frozen=True, slots=True)
class AuthTable:
    """`[auth]` without its keys."""

    keys_file: str = KEYS_FILE


@dataclass(frozen=True, slots=True)
class Nothing:
    """A section that has no keys of its own."""
