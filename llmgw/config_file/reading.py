"""Strict reading of tables: unknown keys, wrong types and missing keys become faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from llmgw.config_file.faults import Report, Unfit, nearest
from llmgw.config_file.table import Section

T = TypeVar("T")
Raw = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One table that was read, with its place and the keys that stand in it.

    A key that stands there but is faulty has its default: `given` tells it from one left out.
    """

    place: str
    value: T
    given: frozenset[str]
    raw: Raw

    def at(self, key: str) -> str:
        return f"{self.place}.{key}"


def read_section(section: Section[T], root: Raw, report: Report) -> Row[T]:
    """A section that may be left out, all of whose keys have defaults."""
    raw = _as_table(root.get(section.key, {}), section.path, report)
    row = _read(section, raw, section.path, report)
    return cast(Row[T], row)  # nothing is required of it, so there is always a row


def read_tables(section: Section[T], parent: Raw, place: str, report: Report) -> list[Row[T]]:
    """All tables of a list; those that lack a required key are left out, with their fault."""
    found = parent.get(section.key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        report.fault(place, f"must be a list of tables, each written [[{section.path}]]")
        return []
    rows = (_read(section, raw, f"{place}[{index}]", report) for index, raw in enumerate(found))
    return [row for row in rows if row is not None]


def refuse_unknown(raw: Raw, known: frozenset[str], place: str, report: Report) -> None:
    """`place` is "" for the file's top."""
    for key in raw:
        if key not in known:
            path = f"{place}.{key}" if place else key
            report.fault(path, "unknown key" if place else "unknown section", nearest(key, known))


def refuse_same(rows: Sequence[Row[T]], key: str, report: Report) -> None:
    """A second table with the same value of a key; the value itself is not quoted."""
    first: dict[object, str] = {}
    for row in rows:
        other = first.setdefault(getattr(row.value, key), row.place)
        if other != row.place:
            report.fault(row.at(key), f"is that of {other} too")


def _read(section: Section[T], raw: Raw, place: str, report: Report) -> Row[T] | None:
    values = dict(_values(section, raw, place, report))
    refuse_unknown(_without_refused(section, raw, place, report), _keys(section), place, report)
    lacks = [one.key for one in section.fields if one.required and one.key not in values]
    for key in lacks:
        if key not in raw:
            report.fault(f"{place}.{key}", "is missing")
    if lacks:
        return None
    made = section.makes(**values)
    return Row(place, made, frozenset(raw), raw)


def _values(
    section: Section[T], raw: Raw, place: str, report: Report
) -> Iterator[tuple[str, object]]:
    for one in section.fields:
        if one.key not in raw:
            continue
        try:
            value = one.kind.parse(raw[one.key])
        except Unfit as unfit:
            report.fault(f"{place}.{one.key}", unfit.message, unfit.hint)
            continue
        if not one.ignored:
            yield one.key, value


def _without_refused(section: Section[T], raw: Raw, place: str, report: Report) -> Raw:
    for key in raw.keys() & section.refused.keys():
        report.fault(f"{place}.{key}", section.refused[key])
    return {key: value for key, value in raw.items() if key not in section.refused}


def _keys(section: Section[T]) -> frozenset[str]:
    return frozenset(one.key for one in section.fields) | frozenset(section.children)


def _as_table(found: object, place: str, report: Report) -> Raw:
    if isinstance(found, dict):
        return found
    report.fault(place, f"must be a table, written [{place}]")
    return {}
