"""The plain sections: each makes one dataclass of `core/config`, key by key."""

from __future__ import annotations

from typing import Final

from llmgw.config_file.kinds import (
    BOOL,
    DURATION,
    LISTEN,
    NAME,
    PAUSE,
    SHARE,
    SIZE,
    choice,
    integer,
    off_or,
)
from llmgw.config_file.links import DATABASE_URL, ENDPOINT, ORIGINS
from llmgw.config_file.table import Field, Section
from llmgw.core.config import (
    CircuitsConfig,
    ClusterConfig,
    DatabaseConfig,
    DiscoveryConfig,
    GatewayConfig,
    LimitsConfig,
    LogConfig,
    RoutingConfig,
    StreamsConfig,
    TracingConfig,
    WebsocketConfig,
)

CLUSTER_SECTION: Final = Section(
    "cluster",
    "What this gateway is called.",
    ClusterConfig,
    (Field("name", NAME, "Shown in logs and on the admin pages."),),
)

GATEWAY: Final = Section(
    "gateway",
    "Where the gateway listens, how it checks nodes, and how much it takes.",
    GatewayConfig,
    (
        Field(
            "listen",
            LISTEN,
            'Where clients connect: ":8000", "host:port", "[::1]:8000", "unix:/path", or a list.',
        ),
        Field("metrics_listen", LISTEN, "Where /metrics is served; [] serves it nowhere."),
        Field("health_interval", DURATION, "Between two checks, and two listings, of a node."),
        Field("health_timeout", DURATION, "How long one check may take."),
        Field(
            "health_fail_threshold",
            integer(),
            "Failed checks in a row that make a node dead, and failed listings that expire it.",
        ),
        Field(
            "request_overload_threshold",
            integer(),
            "Answers >= 500 in a row that show a healthy node as degraded for 10 s.",
        ),
        Field("max_request_body_bytes", SIZE, "Larger request bodies are refused with 413."),
        Field(
            "max_buffered_response_bytes",
            SIZE,
            "Larger answers pass through and can no longer be replaced by another node's.",
        ),
        Field("drain_timeout", PAUSE, "How long a stop waits for running streams."),
        Field("cors_origins", ORIGINS, 'Web origins that browsers may call from; ["*"] is any.'),
        Field(
            "health_details",
            BOOL,
            "false shows the nodes of /health only on metrics_listen.",
        ),
        Field(
            "event_loop",
            choice("asyncio", "uvloop"),
            "uvloop moves a few busy streams for less; past 1,000 it lets new ones wait.",
            restart=True,
        ),
    ),
)

DATABASE: Final = Section(
    "database",
    "State that outlives a request: circuits, pins, the records of requests.",
    DatabaseConfig,
    (
        Field(
            "url",
            DATABASE_URL,
            '"sqlite:///PATH", "sqlite://" (in memory), or "postgresql://HOST/NAME".',
            restart=True,
            default="llmgw.db in the state folder",
        ),
        Field("keep", DURATION, "How long the records of requests are kept."),
    ),
)

DISCOVERY: Final = Section(
    "discovery",
    "How upstreams are asked for their models.",
    DiscoveryConfig,
    (
        Field(
            "account_interval",
            DURATION,
            "Between two listings of an account; nodes are listed every health_interval.",
        ),
        Field("timeout", DURATION, "How long one listing of a node may take."),
        Field("account_timeout", DURATION, "How long one listing of an account may take."),
        Field("max_bytes", SIZE, "A longer list is a failed one."),
    ),
)

ROUTING: Final = Section(
    "routing",
    "How many upstreams one request may try, and how long it waits for each.",
    RoutingConfig,
    (
        Field("plan_size", integer(), "Candidates that one request may try."),
        Field("connect_timeout", DURATION, "How long making a connection may take."),
        Field(
            "header_timeout",
            off_or(DURATION),
            "How long until the response head; off, since engines may send it after the prefill.",
        ),
        Field(
            "recheck_404",
            BOOL,
            "Ask a node's list after a 404 that does not say what was not found.",
        ),
        Field("explain", BOOL, "Tell every client its attempts in x-llmgw-attempts."),
    ),
)

CIRCUITS: Final = Section(
    "circuits",
    "When an assignment is no longer asked for a model, and when it is tried again.",
    CircuitsConfig,
    (
        Field("failure_threshold", integer(), "Failures in a row that open a circuit."),
        Field("open_for", DURATION, "Until the first probe; doubles with each reopening."),
        Field("probes", integer(), "Probes that may run at once."),
        Field("successes", integer(), "Probes that must succeed to close a circuit."),
    ),
)

STREAMS: Final = Section(
    "streams",
    "How event streams are withheld, kept alive and ended.",
    StreamsConfig,
    (
        Field(
            "commit_after",
            DURATION,
            "How long the status line waits for the first visible event.",
        ),
        Field("keepalive", DURATION, "The silence after which a keepalive is sent."),
        Field(
            "first_event_timeout",
            off_or(DURATION),
            "How long a candidate that is not the last may take to its first visible event.",
        ),
        Field("idle_timeout", DURATION, "The longest silence between two events."),
        Field("client_stall", DURATION, "A client that takes nothing for so long is cut."),
        Field("hold_bytes", SIZE, "How much is withheld before it goes out anyway."),
        Field("max_event_bytes", SIZE, "The longest event that is still looked into."),
    ),
)

WEBSOCKET: Final = Section(
    "websocket",
    "Websocket connections on /v1/responses and /v1/realtime.",
    WebsocketConfig,
    (
        Field("max_frame_bytes", SIZE, "A longer frame closes the socket with 1009."),
        Field("bridge", BOOL, "Serve upstreams without websockets over event streams."),
        Field(
            "transcript_bytes", SIZE, "How much of a bridged conversation is kept to repeat it."
        ),
    ),
)

LIMITS: Final = Section(
    "limits",
    "How much runs at once; more waits in line, and is then refused with 429.",
    LimitsConfig,
    (
        Field(
            "max_in_flight", off_or(integer()), "Requests at once, per pool and per assignment."
        ),
        Field("queue", integer(0), "Requests that may wait, per pool."),
        Field("queue_timeout", DURATION, "How long a request waits in line."),
    ),
)

LOG: Final = Section(
    "log",
    "What is logged, and in which form.",
    LogConfig,
    (
        Field(
            "format",
            choice("auto", "json", "logfmt"),
            '"auto" is logfmt on a terminal and JSON elsewhere.',
        ),
        Field("level", choice("debug", "info", "warning", "error"), "The least that is logged."),
        Field("access", BOOL, "One line for each request."),
    ),
)

TRACING: Final = Section(
    "tracing",
    "Spans by OTLP over HTTP.",
    TracingConfig,
    (
        Field("endpoint", off_or(ENDPOINT), "The collector's URL."),
        Field("sample", SHARE, "The share of requests that are traced."),
    ),
)
