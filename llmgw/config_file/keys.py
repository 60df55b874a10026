"""Client keys: `[[auth.keys]]` of the configuration, and the keys file of the same form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from llmgw.config_file.faults import ConfigError, Report, nearest
from llmgw.config_file.reading import (
    Raw,
    Row,
    read_section,
    read_tables,
    refuse_same,
    refuse_unknown,
)
from llmgw.config_file.source import parse_toml, read_file
from llmgw.config_file.tables import AUTH, KEYS
from llmgw.core.config import KeyConfig


def load_keys(
    path: Path, *, pools: Collection[str] | None = None, besides: Sequence[KeyConfig] = ()
) -> tuple[KeyConfig, ...]:
    """The keys of a keys file; blocks on the disk, cheap enough for once a second.

    Raises `FileMissing` if there is none, and `ConfigError` for one that can't be read or has a
    fault; with `pools` a key of another pool is one, with `besides` one that is there already.
    """
    report = Report()
    rows = _read_rows(parse_toml(read_file(path), path), report)
    if pools is not None:
        refuse_unknown_pools(rows, pools, report)
    _refuse_known(rows, besides, report)
    if report.faults:
        raise ConfigError(
            [replace(one, place=f"{path.name}: {one.place}") for one in report.faults]
        )
    return tuple(row.value for row in rows)


def read_key_tables(auth: Raw, report: Report) -> list[Row[KeyConfig]]:
    rows = read_tables(KEYS, auth, KEYS.path, report)
    refuse_same(rows, "name", report)
    refuse_same(rows, "digest", report)
    return rows


def refuse_unknown_pools(
    rows: Iterable[Row[KeyConfig]], pools: Collection[str], report: Report
) -> None:
    for row in rows:
        pool = row.value.pool
        if pool not in pools:
            place = row.at("pool") if "pool" in row.given else row.place
            report.fault(place, f'there is no pool "{pool}"', nearest(pool, pools))


def _read_rows(root: Raw, report: Report) -> list[Row[KeyConfig]]:
    refuse_unknown(root, frozenset({AUTH.key}), "", report)
    auth = read_section(AUTH, root, report)
    if "keys_file" in auth.given:
        report.fault(auth.at("keys_file"), "means something in the configuration only")
    return read_key_tables(auth.raw, report)


def _refuse_known(
    rows: Iterable[Row[KeyConfig]], besides: Sequence[KeyConfig], report: Report
) -> None:
    names = {key.name for key in besides}
    digests = {key.digest for key in besides}
    for row in rows:
        if row.value.name in names:
            report.fault(row.at("name"), "is that of a key in the configuration too")
        if row.value.digest in digests:
            report.fault(row.at("digest"), "is that of a key in the configuration too")
