"""Values to show for keys without a default, and whole tables for the lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llmgw.config_file.kinds import Toml

NO_DEFAULT: Final[Mapping[str, Toml]] = {
    "database.url": "sqlite:////var/lib/llmgw/llmgw.db",
    "models.default": "qwen3-32b",
}

_DIGEST: Final = "sha256:" + "0" * 64  # nobody knows a key of this digest
_PASSWORD: Final = f"scrypt$16384$8$5${'A' * 22}==${'A' * 43}="  # nor a password of this hash

TABLES: Final[tuple[tuple[str, Mapping[str, Toml]], ...]] = (
    (
        "auth.keys",
        {
            "name": "search-team",
            "digest": _DIGEST,
            "pool": "cluster",
            "models": ["qwen3-*", "llama-3.1-405b"],
            "labels": {"team": "search"},
            "expires_at": "2035-01-31T00:00:00Z",
            "max_in_flight": 50,
            "explain": False,
        },
    ),
    (
        "admin.users",
        {
            "name": "operator",
            "password": _PASSWORD,
            "token_digest": _DIGEST,
            "pools": ["cluster"],
        },
    ),
    (
        "nodes",
        {
            "url": "http://10.0.0.5:8000",
            "name": "gpu-1",
            "ring": "big",
            "health_path": "/health",
            "metrics_port": 9400,
            "api_key_file": "gpu-1.key",
            "routes": ["/v1/chat/completions", "/v1/completions"],
            "websocket": False,
            "drain": False,
        },
    ),
    (
        "nodes",
        {
            "url": "http://10.0.0.6:11434",
            "name": "ollama",
            "health": "off",
            "api_key_env": "OLLAMA_KEY",
        },
    ),
    ("nodes", {"ip": "10.0.0.7", "vllm_port": 8000}),
    (
        "accounts",
        {
            "name": "openai",
            "url": "https://api.openai.com",
            "api_key_file": "openai.key",
            "auth": "bearer",
            "headers": {"x-team": "search"},
            "models": ["gpt-5"],
            "websocket": True,
            "hide_messages": False,
            "routes": ["/v1/chat/completions", "/v1/responses"],
        },
    ),
    (
        "accounts",
        {
            "name": "anthropic",
            "url": "https://api.anthropic.com",
            "api_key_env": "ANTHROPIC_API_KEY",
            "auth": "x-api-key",
        },
    ),
    (
        "models.available",
        {"name": "qwen3-32b", "price_in": 0.25, "price_out": 1.0, "price_cached": 0.05},
    ),
    ("models.available", {"name": "llama-3.1-405b", "ring": "big", "pipeline_stages": 4}),
    (
        "pools",
        {
            "name": "cluster",
            "strategy": "round_robin",
            "cache_affinity": True,
            "max_in_flight": 200,
        },
    ),
    ("pools.assignments", {"upstream": "gpu-1"}),
    ("pools.assignments", {"upstream": "ollama"}),
    ("pools", {"name": "providers", "strategy": "least_load"}),
    ("pools.assignments", {"upstream": "openai"}),
    ("pools.assignments", {"upstream": "anthropic"}),
)
