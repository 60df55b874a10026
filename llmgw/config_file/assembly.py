"""The tables of a file, put together as one configuration and checked against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from llmgw.config_file.faults import Report, nearest
from llmgw.config_file.keys import read_key_tables, refuse_unknown_pools
from llmgw.config_file.loops import refuse_loops, refuse_shared_listens
from llmgw.config_file.oddities import note_oddities
from llmgw.config_file.pools import build_pools
from llmgw.config_file.reading import (
    Raw,
    Row,
    read_section,
    read_tables,
    refuse_same,
    refuse_unknown,
)
from llmgw.config_file.secrets import Secrets
from llmgw.config_file.settings import (
    CIRCUITS,
    CLUSTER_SECTION,
    DATABASE,
    DISCOVERY,
    GATEWAY,
    LIMITS,
    LOG,
    ROUTING,
    STREAMS,
    TRACING,
    WEBSOCKET,
)
from llmgw.config_file.table import Section
from llmgw.config_file.tables import (
    ACCOUNTS,
    ADMIN,
    ASSIGNMENTS,
    AUTH,
    AVAILABLE,
    KEYS,
    MODELS,
    NODES,
    POOLS,
    USERS,
)
from llmgw.config_file.upstreams import build_upstreams
from llmgw.config_file.written import AuthTable
from llmgw.core.config import (
    AdminConfig,
    AdminUser,
    AuthConfig,
    Config,
    KeyConfig,
    ModelsConfig,
    Pool,
)

PLAIN: Final[tuple[Section[object], ...]] = (
    CLUSTER_SECTION,
    GATEWAY,
    DATABASE,
    DISCOVERY,
    ROUTING,
    CIRCUITS,
    STREAMS,
    WEBSOCKET,
    LIMITS,
    LOG,
    TRACING,
)
SECTIONS: Final[tuple[Section[object], ...]] = (
    *PLAIN,
    AUTH,
    KEYS,
    ADMIN,
    USERS,
    NODES,
    ACCOUNTS,
    MODELS,
    AVAILABLE,
    POOLS,
    ASSIGNMENTS,
)
PROVISION: Final = "provision"
_TOP: Final = frozenset(one.path for one in SECTIONS if "." not in one.path)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A configuration, and where its keys file lies as written."""

    config: Config
    keys_file: str


def parse(root: Raw, secrets: Secrets, report: Report) -> Assembled:
    """Raises `ConfigError` with all faults of the file; its warnings are in the report."""
    refuse_unknown({key: root[key] for key in root if key != PROVISION}, _TOP, "", report)
    if PROVISION in root:
        report.note(PROVISION, "is the older gateway's and is ignored")
    auth = read_section(AUTH, root, report)
    keys = read_key_tables(auth.raw, report)
    users = _users(root, report)
    upstreams = build_upstreams(root, secrets, report)
    pools = build_pools(root, upstreams, report, has_auth=AUTH.key in root)
    _refuse_unknown_pools(keys, users, pools, report)
    config = replace(
        _plain(root, report),
        auth=_auth(auth, keys) if AUTH.key in root else None,
        admin=AdminConfig(tuple(row.value for row in users)),
        models=_models(root, report),
        nodes=tuple(one.upstream for one in upstreams.nodes),
        accounts=tuple(one.upstream for one in upstreams.accounts),
        pools=pools,
    )
    refuse_shared_listens(config.gateway, report)
    refuse_loops(config.gateway, upstreams, report)
    report.raise_faults()  # places of oddities count tables: all of them have to be there
    note_oddities(config, report)
    return Assembled(config, auth.value.keys_file)


def _plain(root: Raw, report: Report) -> Config:
    """The sections that stand for themselves."""
    return Config(
        cluster=read_section(CLUSTER_SECTION, root, report).value,
        gateway=read_section(GATEWAY, root, report).value,
        database=read_section(DATABASE, root, report).value,
        discovery=read_section(DISCOVERY, root, report).value,
        routing=read_section(ROUTING, root, report).value,
        circuits=read_section(CIRCUITS, root, report).value,
        streams=read_section(STREAMS, root, report).value,
        websocket=read_section(WEBSOCKET, root, report).value,
        limits=read_section(LIMITS, root, report).value,
        log=read_section(LOG, root, report).value,
        tracing=read_section(TRACING, root, report).value,
    )


def _auth(section: Row[AuthTable], keys: list[Row[KeyConfig]]) -> AuthConfig:
    written = section.value.keys_file if "keys_file" in section.given else None
    return AuthConfig(tuple(row.value for row in keys), written)


def _models(root: Raw, report: Report) -> ModelsConfig:
    section = read_section(MODELS, root, report)
    rows = read_tables(AVAILABLE, section.raw, AVAILABLE.path, report)
    refuse_same(rows, "name", report)
    return ModelsConfig(section.value.default, tuple(row.value for row in rows))


def _users(root: Raw, report: Report) -> list[Row[AdminUser]]:
    section = read_section(ADMIN, root, report)
    rows = read_tables(USERS, section.raw, USERS.path, report)
    refuse_same(rows, "name", report)
    for row in rows:
        if not row.given & {"password", "token_digest"}:
            report.fault(row.place, "needs a password or a token_digest")
    return rows


def _refuse_unknown_pools(
    keys: list[Row[KeyConfig]],
    users: list[Row[AdminUser]],
    pools: tuple[Pool, ...],
    report: Report,
) -> None:
    known = {pool.name for pool in pools}
    refuse_unknown_pools(keys, known, report)
    for row in users:
        for name in row.value.pools:
            if name not in known:
                report.fault(row.at("pools"), f'there is no pool "{name}"', nearest(name, known))
