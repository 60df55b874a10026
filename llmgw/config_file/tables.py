"""The sections that are lists, or hold lists: upstreams, models, pools, keys, operators."""

from __future__ import annotations

from typing import Final

from llmgw.config_file.kinds import (
    BOOL,
    DIGEST,
    HEADERS,
    LABELS,
    MOMENT,
    NAME,
    NAME_OR_NONE,
    PASSWORD,
    PATH,
    PORT,
    PRICE,
    STRATEGY,
    TEXT,
    choice,
    integer,
    names,
    off_or,
)
from llmgw.config_file.links import BASE_URL, HOST
from llmgw.config_file.table import Field, Section
from llmgw.config_file.written import (
    AccountTable,
    AssignmentTable,
    AuthTable,
    ModelsTable,
    NodeTable,
    Nothing,
    PoolTable,
)
from llmgw.core.config import AdminUser, KeyConfig, ModelConfig
from llmgw.core.routes import BY_PATH

ROUTE_PATHS: Final = frozenset(BY_PATH) | {"/v1/files", "/v1/realtime"}

_INLINE: Final = "secrets are never in this file: use api_key_env or api_key_file"
_REFUSED_INLINE: Final = {"api_key": _INLINE, "key": _INLINE, "token": _INLINE}
_TOKEN: Final = "only a key's digest is kept: llmgw key new makes one"  # noqa: S105 - a message
_KEY_ENV: Final = Field("api_key_env", TEXT, "The environment variable that holds its key.")
_KEY_FILE: Final = Field(
    "api_key_file",
    TEXT,
    "The file whose first line is its key; a name without a folder is looked for among systemd's "
    "credentials, then beside this file.",
)
_URL: Final = Field("url", BASE_URL, "The part before /v1; a path prefix is kept.")
_ROUTES: Final = Field(
    "routes", names(ROUTE_PATHS), "The paths that it has.", default="all of them"
)
_WEBSOCKET: Final = Field(
    "websocket", BOOL, "Whether it takes websocket connections.", default="found out"
)

NODES: Final = Section(
    "nodes",
    "Self-hosted servers: checked, listed and scraped.",
    NodeTable,
    (
        _URL,
        Field(
            "name", NAME_OR_NONE, "Shown everywhere.", default="host:port of the URL, or the ip"
        ),
        Field(
            "ring",
            NAME_OR_NONE,
            "Serves the models of this ring and no others.",
            default="none: the models without a ring",
        ),
        Field("health_path", PATH, "Answers 200 while the node is well."),
        Field("health", choice("on", "off"), '"off" for servers without a health path (Ollama).'),
        Field(
            "metrics_port",
            PORT,
            "Where a GPU exporter listens on the same host.",
            default="none",
        ),
        _KEY_ENV,
        _KEY_FILE,
        _ROUTES,
        _WEBSOCKET,
        Field("drain", BOOL, "Watched, but given no new work."),
        Field("ip", HOST, "The older form of url: the host."),
        Field("vllm_port", PORT, "The older form of url: the port."),
    ),
    many=True,
    refused=_REFUSED_INLINE,
)

ACCOUNTS: Final = Section(
    "accounts",
    "Providers' endpoints with a credential: listed, but not checked.",
    AccountTable,
    (
        Field("name", NAME, "Shown everywhere.", required=True),
        _URL,
        _KEY_ENV,
        _KEY_FILE,
        Field(
            "auth",
            choice("bearer", "x-api-key", "api-key"),
            "The header that carries its key; x-api-key is Anthropic's, api-key Azure's.",
        ),
        Field("headers", HEADERS, "Sent with every request."),
        Field("models", names(), "Models that it serves without listing them."),
        Field("websocket", BOOL, _WEBSOCKET.doc, default="found out"),
        Field("hide_messages", BOOL, "Keep its error messages from clients."),
        _ROUTES,
    ),
    many=True,
    refused=_REFUSED_INLINE,
)

MODELS: Final = Section(
    "models",
    "The model for requests that name none.",
    ModelsTable,
    (
        Field(
            "default",
            NAME_OR_NONE,
            "Takes the place of a missing, null or empty model.",
            default="none: such requests are refused",
        ),
    ),
    children=("available",),
)

AVAILABLE: Final = Section(
    "models.available",
    "Models that are listed before any node has named them, and the ring of each.",
    ModelConfig,
    (
        Field("name", NAME, "The id exactly as the nodes serve it.", required=True),
        Field("ring", NAME_OR_NONE, "Only nodes of this ring serve it.", default="none"),
        Field("price_in", PRICE, "Of a million tokens in, for `llmgw usage`.", default="none"),
        Field("price_out", PRICE, "Of a million tokens out.", default="none"),
        Field(
            "price_cached",
            PRICE,
            "Of a million tokens in that the upstream's cache knew.",
            default="as `price_in`",
        ),
        Field(
            "pipeline_stages",
            integer(),
            "Of the older gateway: accepted, means nothing.",
            ignored=True,
        ),
    ),
    many=True,
)

POOLS: Final = Section(
    "pools",
    "Sets of upstreams with one routing policy. Without any there is one, cluster, of all nodes.",
    PoolTable,
    (
        Field("name", NAME, 'The assignment\'s id is "pool/upstream".', required=True),
        Field("strategy", STRATEGY, "How candidates that are otherwise equal are ordered."),
        Field("cache_affinity", BOOL, "Keep requests of one prompt_cache_key together."),
        Field(
            "max_in_flight",
            integer(),
            "Requests of this pool at once.",
            default="that of [limits]",
        ),
    ),
    many=True,
    children=("assignments",),
)

ASSIGNMENTS: Final = Section(
    "pools.assignments",
    "The upstreams of the pool above.",
    AssignmentTable,
    (Field("upstream", NAME, "The name of a node or an account.", required=True),),
    many=True,
)

AUTH: Final = Section(
    "auth",
    "Who may call. Without this section and without a keys file everybody may.",
    AuthTable,
    (Field("keys_file", TEXT, "Holds the keys that the command line writes; beside this file."),),
    children=("keys",),
)

KEYS: Final = Section(
    "auth.keys",
    "Clients' keys; the keys file holds the same tables.",
    KeyConfig,
    (
        Field("name", NAME, "Shown in logs and usage.", required=True),
        Field("digest", DIGEST, "SHA-256 of the key.", required=True),
        Field("pool", NAME, "Where its requests go."),
        Field("models", names(), 'Models that it may ask for, with "*" for any text.'),
        Field("labels", LABELS, "Kept with its usage."),
        Field("expires_at", MOMENT, "From then on it is unknown.", default="never"),
        Field("max_in_flight", off_or(integer()), "Requests at once."),
        Field("explain", BOOL, "Tell this client its attempts in x-llmgw-attempts."),
    ),
    many=True,
    refused={"token": _TOKEN, "key": _TOKEN, "secret": _TOKEN, "api_key": _TOKEN},
)

ADMIN: Final = Section(
    "admin",
    "The admin pages; off without users.",
    Nothing,
    (),
    children=("users",),
)

USERS: Final = Section(
    "admin.users",
    "Operators, each with the pools that exist for them.",
    AdminUser,
    (
        Field("name", NAME, "Who signs in.", required=True),
        Field("password", PASSWORD, "The scrypt hash of the password.", default="none"),
        Field("token_digest", DIGEST, "SHA-256 of a bearer token.", default="none"),
        Field("pools", names(), "The pools that the operator may see."),
    ),
    many=True,
    refused={"token": "only its digest is kept: token_digest"},
)
