"""Pools and what is placed in them; without any there is one, `cluster`, of all nodes."""

from __future__ import annotations

from llmgw.config_file.faults import Report, nearest
from llmgw.config_file.reading import Raw, Row, read_tables, refuse_same
from llmgw.config_file.tables import ASSIGNMENTS, POOLS
from llmgw.config_file.upstreams import Upstreams
from llmgw.config_file.written import PoolTable
from llmgw.core.config import Pool
from llmgw.core.types import CLUSTER, PoolName, UpstreamName


def build_pools(
    root: Raw, upstreams: Upstreams, report: Report, *, has_auth: bool
) -> tuple[Pool, ...]:
    if POOLS.key not in root:
        return (Pool(CLUSTER, tuple(one.upstream.name for one in upstreams.nodes)),)
    rows = read_tables(POOLS, root, POOLS.path, report)
    refuse_same(rows, "name", report)
    pools = tuple(_pool(row, upstreams, report) for row in rows)
    if not has_auth and all(pool.name != CLUSTER for pool in pools):
        report.fault(
            POOLS.path,
            f'without [auth] every request goes to a pool "{CLUSTER}", and there is none',
            f'name one pool "{CLUSTER}", or add [auth]',
        )
    return pools


def _pool(row: Row[PoolTable], upstreams: Upstreams, report: Report) -> Pool:
    table = row.value
    if "/" in table.name:
        report.fault(row.at("name"), 'must not hold "/", which parts pool and upstream in ids')
    return Pool(
        name=PoolName(table.name),
        upstreams=tuple(map(UpstreamName, _members(row, upstreams.names, report))),
        strategy=table.strategy,
        cache_affinity=table.cache_affinity,
        max_in_flight=table.max_in_flight,
    )


def _members(row: Row[PoolTable], known: frozenset[str], report: Report) -> list[str]:
    found: list[str] = []
    for one in read_tables(ASSIGNMENTS, row.raw, row.at(ASSIGNMENTS.key), report):
        name = one.value.upstream
        if name in found:
            report.fault(one.at("upstream"), f'"{name}" is in this pool already')
        elif name not in known:
            report.fault(
                one.at("upstream"), f'no node or account is called "{name}"', nearest(name, known)
            )
        found.append(name)
    return found
