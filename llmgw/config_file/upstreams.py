"""Nodes and accounts, put together from their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from llmgw.config_file.addresses import in_brackets
from llmgw.config_file.faults import Report
from llmgw.config_file.reading import Raw, Row, read_tables
from llmgw.config_file.secrets import Secrets
from llmgw.config_file.tables import ACCOUNTS, NODES
from llmgw.config_file.written import AccountTable, NodeTable
from llmgw.core.config import Account, BaseUrl, KeySource, Node, Upstream
from llmgw.core.types import UpstreamName

U_co = TypeVar("U_co", bound=Upstream, covariant=True)


@dataclass(frozen=True, slots=True)
class Placed(Generic[U_co]):
    """An upstream with its place in the file, for what is found about it later."""

    place: str
    upstream: U_co


@dataclass(frozen=True, slots=True)
class Upstreams:
    """All that could be put together, and all names, also those of faulty ones."""

    nodes: tuple[Placed[Node], ...]
    accounts: tuple[Placed[Account], ...]
    names: frozenset[str]

    @property
    def placed(self) -> tuple[Placed[Upstream], ...]:
        return (*self.nodes, *self.accounts)


def build_upstreams(root: Raw, secrets: Secrets, report: Report) -> Upstreams:
    nodes = read_tables(NODES, root, NODES.path, report)
    accounts = read_tables(ACCOUNTS, root, ACCOUNTS.path, report)
    urls = [_node_url(row, report) for row in nodes]
    names = [*_node_names(nodes, urls), *(row.value.name for row in accounts)]
    rows: list[Row[NodeTable] | Row[AccountTable]] = [*nodes, *accounts]
    _refuse_same_names(rows, names, report)
    built = Upstreams(
        tuple(
            Placed(row.place, _node(row, name, url, secrets, report))
            for row, name, url in zip(nodes, names, urls, strict=False)
            if url
        ),
        tuple(
            Placed(row.place, _account(row, url, secrets, report))
            for row in accounts
            if (url := _account_url(row, report))
        ),
        frozenset(filter(None, names)),
    )
    _refuse_same_urls(built.nodes, report)
    return built


def _node_url(row: Row[NodeTable], report: Report) -> BaseUrl | None:
    table = row.value
    if "ip" not in row.given:
        if "vllm_port" in row.given and "url" in row.given:
            report.fault(row.at("vllm_port"), "belongs to ip; the port stands in url")
        return _given_url(row, report)
    if "url" in row.given:
        report.fault(row.at("ip"), "url is given too: only one can count")
        return table.url.url if table.url else None
    return BaseUrl("http", table.ip, table.vllm_port) if table.ip else None


def _account_url(row: Row[AccountTable], report: Report) -> BaseUrl | None:
    return _given_url(row, report)


def _given_url(row: Row[NodeTable] | Row[AccountTable], report: Report) -> BaseUrl | None:
    given = row.value.url
    if given is None:
        if "url" not in row.given:
            report.fault(row.at("url"), "is missing")
        return None
    if given.trimmed:
        report.note(row.at("url"), "is the part before /v1", f'taken as "{given.url}"')
    return given.url


def _node_names(
    rows: Sequence[Row[NodeTable]], urls: Sequence[BaseUrl | None]
) -> list[str | None]:
    """The name written, else the older gateway's (the ip), else host:port; longer where two
    nodes would be called the same."""
    hosts = Counter(row.value.ip for row in rows if row.value.name is None)
    places = Counter(_address(url) for url in urls if url)
    return [
        row.value.name or _default_name(row.value, url, hosts, places)
        for row, url in zip(rows, urls, strict=True)
    ]


def _default_name(
    table: NodeTable, url: BaseUrl | None, hosts: Counter[str | None], places: Counter[str]
) -> str | None:
    if url is None:
        return None
    if table.ip is not None and hosts[table.ip] == 1:
        return table.ip
    return _address(url) if places[_address(url)] == 1 else _address(url) + url.prefix


def _address(url: BaseUrl) -> str:
    return f"{in_brackets(url.host)}:{url.port}"


def _refuse_same_names(
    rows: Sequence[Row[NodeTable] | Row[AccountTable]],
    names: Sequence[str | None],
    report: Report,
) -> None:
    """Two default names are only the same for the same URL, which is refused by itself."""
    first: dict[str, Row[NodeTable] | Row[AccountTable]] = {}
    for row, name in zip(rows, names, strict=True):
        if name is None:
            continue
        other = first.setdefault(name, row)
        if other is not row and "name" in row.given | other.given:
            report.fault(row.at("name"), f'"{name}" is the name of {other.place} too')


def _refuse_same_urls(nodes: Sequence[Placed[Node]], report: Report) -> None:
    first: dict[BaseUrl, str] = {}
    for one in nodes:
        if first.setdefault(one.upstream.url, one.place) != one.place:
            same = first[one.upstream.url]
            report.fault(f"{one.place}.url", f"{one.upstream.url} is the URL of {same} too")


def _node(
    row: Row[NodeTable], name: str | None, url: BaseUrl, secrets: Secrets, report: Report
) -> Node:
    table = row.value
    if table.health == "off" and "health_path" in row.given:
        report.fault(row.at("health_path"), 'can\'t be asked while health is "off"')
    return Node(
        name=UpstreamName(name or str(url)),
        url=url,
        ring=table.ring,
        health_path=None if table.health == "off" else table.health_path,
        metrics_port=table.metrics_port,
        credential=secrets.credential(row, "bearer", report),
        routes=None if table.routes is None else frozenset(table.routes),
        websocket=table.websocket,
        drain=table.drain,
        key_source=_key_source(table),
    )


def _account(row: Row[AccountTable], url: BaseUrl, secrets: Secrets, report: Report) -> Account:
    table = row.value
    return Account(
        name=UpstreamName(table.name),
        url=url,
        auth=table.auth,
        credential=secrets.credential(row, table.auth, report),
        headers=table.headers,
        models=table.models,
        websocket=table.websocket,
        hide_messages=table.hide_messages,
        routes=None if table.routes is None else frozenset(table.routes),
        key_source=_key_source(table),
    )


def _key_source(table: NodeTable | AccountTable) -> KeySource | None:
    if table.api_key_env:
        return KeySource("api_key_env", table.api_key_env)
    return KeySource("api_key_file", table.api_key_file) if table.api_key_file else None
