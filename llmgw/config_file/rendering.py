"""A configuration written out: every key with its effective value, and no secret."""

from __future__ import annotations

from typing import Final

from llmgw.config_file.assembly import PLAIN
from llmgw.config_file.base_urls import GivenUrl
from llmgw.config_file.kinds import Toml
from llmgw.config_file.table import Section
from llmgw.config_file.tables import ACCOUNTS, AVAILABLE, KEYS, MODELS, NODES, POOLS, USERS
from llmgw.config_file.written import KEYS_FILE
from llmgw.core.config import (
    Account,
    AdminUser,
    AuthConfig,
    Config,
    KeyConfig,
    ModelsConfig,
    Node,
    Pool,
    Upstream,
)

LOADED_FILE: Final = "loaded.json"  # in RUNTIME_DIRECTORY: what the running gateway last loaded

MASK: Final = "***"
SHOWN_DIGITS: Final = 16

Table = dict[str, Toml]


def render(config: Config) -> Table:
    """The tables of a file that would load to this configuration, its secrets masked.

    As JSON it is what the daemon writes to `RUNTIME_DIRECTORY/loaded.json` after each load, for
    `llmgw check --diff`.
    """
    written: Table = {one.path: show(one, getattr(config, one.path)) for one in PLAIN}
    if config.auth is not None:
        written["auth"] = _auth(config.auth)
    if config.admin.users:
        written["admin"] = {"users": [_user(one) for one in config.admin.users]}
    written |= {
        "models": _models(config.models),
        "nodes": [_node(one) for one in config.nodes],
        "accounts": [_account(one) for one in config.accounts],
        "pools": [_pool(one) for one in config.pools],
    }
    return {key: table for key, table in written.items() if table}


def show(section: Section[object], value: object, **other: object) -> Table:
    """The keys of one table; `other` stands in for what the value has in another form.
    None is left out where it has no written form."""
    attributes = {name: getattr(value, name) for name in attribute_names(value)} | other
    return {
        one.key: one.kind.show(attributes[one.key])
        for one in section.fields
        if one.key in attributes and (attributes[one.key] is not None or one.kind.shows_none)
    }


def attribute_names(value: object) -> tuple[str, ...]:
    return tuple(getattr(value, "__dataclass_fields__", ()))


def _auth(auth: AuthConfig) -> Table:
    keys: list[Toml] = [_key(one) for one in auth.keys]
    return {"keys_file": auth.keys_file or KEYS_FILE, "keys": keys}


def _key(key: KeyConfig) -> Table:
    """With as much of the digest as tells keys apart."""
    return show(KEYS, key) | {"digest": f"sha256:{key.digest[:SHOWN_DIGITS]}{MASK}"}


def _user(user: AdminUser) -> Table:
    table = show(USERS, user)
    return table | {key: MASK for key in ("password", "token_digest") if key in table}


def _models(models: ModelsConfig) -> Table:
    available: list[Toml] = [show(AVAILABLE, one) for one in models.available]
    return show(MODELS, models) | ({"available": available} if available else {})


def _node(node: Node) -> Table:
    return show(
        NODES,
        node,
        url=GivenUrl(node.url),
        health="off" if node.health_path is None else "on",
        **_common(node),
    )


def _account(account: Account) -> Table:
    """Header values may be secrets that nobody has told us of."""
    masked: Table = {"headers": {name: MASK for name, _ in account.headers}}
    shown = show(ACCOUNTS, account, url=GivenUrl(account.url), **_common(account))
    return shown | masked


def _common(upstream: Upstream) -> dict[str, object]:
    source = upstream.key_source
    routes = None if upstream.routes is None else sorted(upstream.routes)
    return {"routes": routes} | ({source.key: source.name} if source else {})


def _pool(pool: Pool) -> Table:
    members: list[Toml] = [{"upstream": one} for one in pool.upstreams]
    return show(POOLS, pool) | {"assignments": members}
