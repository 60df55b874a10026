"""The configuration as values: every section with its defaults, valid once built.

Durations are seconds, sizes are bytes. `llmgw/config_file` makes these from TOML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from llmgw.core.types import (
    CLUSTER,
    AssignmentId,
    Headers,
    PoolName,
    Strategy,
    UpstreamName,
    assignment_id,
)

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listen:
    """One address to listen on: a TCP host and port, or a unix socket path."""

    host: str = ""
    port: int = 0
    path: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    name: str = "llmgw"


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    listen: tuple[Listen, ...] = (Listen(port=8000),)
    metrics_listen: tuple[Listen, ...] = (Listen(port=9090),)
    health_interval: float = 3.0
    health_timeout: float = 5.0
    health_fail_threshold: int = 3
    request_overload_threshold: int = 3
    max_request_body_bytes: int = 32 * MIB
    max_buffered_response_bytes: int = 8 * MIB
    drain_timeout: float = 600.0
    cors_origins: tuple[str, ...] = ()
    health_details: bool = True
    event_loop: str = "asyncio"  # or "uvloop"


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """A client's credential: `digest` is the lower-case hex SHA-256 of the token."""

    name: str
    digest: str
    pool: PoolName = CLUSTER
    models: tuple[str, ...] = ("*",)
    labels: tuple[tuple[str, str], ...] = ()
    expires_at: float | None = None  # unix time
    max_in_flight: int | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class AuthConfig:
    keys: tuple[KeyConfig, ...] = ()
    keys_file: str | None = None  # None: `keys.toml` beside the configuration


@dataclass(frozen=True, slots=True)
class DatabaseConfig:
    url: str | None = None  # None: SQLite in the state directory; "sqlite://": in memory
    keep: float = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class DiscoveryConfig:
    account_interval: float = 300.0
    timeout: float = 5.0
    account_timeout: float = 30.0
    max_bytes: int = 4 * MIB


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    plan_size: int = 3
    connect_timeout: float = 5.0
    header_timeout: float | None = None
    recheck_404: bool = True
    explain: bool = False


@dataclass(frozen=True, slots=True)
class CircuitsConfig:
    failure_threshold: int = 3
    open_for: float = 60.0
    probes: int = 1
    successes: int = 1


@dataclass(frozen=True, slots=True)
class StreamsConfig:
    commit_after: float = 10.0
    keepalive: float = 10.0
    first_event_timeout: float | None = None
    idle_timeout: float = 300.0
    client_stall: float = 300.0
    hold_bytes: int = 256 * 1024
    max_event_bytes: int = 8 * MIB


@dataclass(frozen=True, slots=True)
class WebsocketConfig:
    max_frame_bytes: int = 64 * MIB
    bridge: bool = True
    transcript_bytes: int = 8 * MIB


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    max_in_flight: int | None = None
    queue: int = 0
    queue_timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class LogConfig:
    format: str = "auto"  # "auto": logfmt on a terminal, else JSON
    level: str = "info"
    access: bool = True


@dataclass(frozen=True, slots=True)
class TracingConfig:
    endpoint: str | None = None
    sample: float = 1.0


@dataclass(frozen=True, slots=True)
class AdminUser:
    name: str
    password: str | None = None  # scrypt hash
    token_digest: str | None = None  # SHA-256 of a bearer token
    pools: tuple[PoolName, ...] = ()


@dataclass(frozen=True, slots=True)
class AdminConfig:
    users: tuple[AdminUser, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    name: str
    ring: str | None = None
    price_in: float | None = None  # for a million tokens, in the operator's own currency
    price_out: float | None = None
    price_cached: float | None = None


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    default: str | None = None
    available: tuple[ModelConfig, ...] = ()

    def ring_of(self, model: str) -> str | None:
        return next((one.ring for one in self.available if one.name == model), None)


class BaseUrl(NamedTuple):
    """The part of an upstream's URL before `/v1`: `prefix` is "" or starts with "/"."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """`host` of a request line's Host header (RFC 9110, section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where an upstream's key was read from: may be shown, which the key itself may not."""

    key: str  # "api_key_env" or "api_key_file"
    name: str


@dataclass(frozen=True, slots=True)
class Node:
    """A self-hosted server: probed, listed and scraped."""

    name: UpstreamName
    url: BaseUrl
    ring: str | None = None
    health_path: str | None = "/health"  # None: health = "off"
    metrics_port: int | None = None
    credential: Headers = field(default=(), repr=False)  # the header that carries its key
    routes: frozenset[str] | None = None  # route paths it has; None: all
    websocket: bool | None = None  # None: found out
    drain: bool = False
    key_source: KeySource | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """A provider's endpoint with a credential: listed only."""

    name: UpstreamName
    url: BaseUrl
    auth: str = "bearer"  # "bearer", "x-api-key" or "api-key"
    credential: Headers = field(default=(), repr=False)
    headers: Headers = field(default=(), repr=False)
    models: tuple[str, ...] = ()
    websocket: bool | None = None
    hide_messages: bool = False
    routes: frozenset[str] | None = None
    key_source: KeySource | None = None


Upstream = Node | Account


@dataclass(frozen=True, slots=True)
class Pool:
    """A named set of assignments with one routing policy."""

    name: PoolName
    upstreams: tuple[UpstreamName, ...]
    strategy: Strategy = Strategy.ROUND_ROBIN
    cache_affinity: bool = True
    max_in_flight: int | None = None

    def assignment(self, upstream: UpstreamName) -> AssignmentId:
        return assignment_id(self.name, upstream)


@dataclass(frozen=True, slots=True)
class Config:
    """One whole, valid configuration."""

    cluster: ClusterConfig = ClusterConfig()
    gateway: GatewayConfig = GatewayConfig()
    auth: AuthConfig | None = None  # None: no [auth] section
    admin: AdminConfig = AdminConfig()
    database: DatabaseConfig = DatabaseConfig()
    discovery: DiscoveryConfig = DiscoveryConfig()
    routing: RoutingConfig = RoutingConfig()
    circuits: CircuitsConfig = CircuitsConfig()
    streams: StreamsConfig = StreamsConfig()
    websocket: WebsocketConfig = WebsocketConfig()
    limits: LimitsConfig = LimitsConfig()
    log: LogConfig = LogConfig()
    tracing: TracingConfig = TracingConfig()
    models: ModelsConfig = ModelsConfig()
    nodes: tuple[Node, ...] = ()
    accounts: tuple[Account, ...] = ()
    pools: tuple[Pool, ...] = ()  # always filled: the implicit `cluster` is made by the parser

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        return (*self.nodes, *self.accounts)

    def pool(self, name: PoolName) -> Pool | None:
        return next((one for one in self.pools if one.name == name), None)
