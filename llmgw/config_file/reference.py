"""The reference of all keys, made from the tables that the reader reads by: the commented
`etc/llmgw.toml` and `docs/configuration.md`. `python -m llmgw.config_file.reference` writes both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Final

from llmgw.config_file.assembly import PLAIN, SECTIONS
from llmgw.config_file.examples import NO_DEFAULT, TABLES
from llmgw.config_file.kinds import Toml
from llmgw.config_file.prose import FILE_HEAD, PAGE_HEAD
from llmgw.config_file.table import Field, Section
from llmgw.config_file.tables import AUTH, MODELS
from llmgw.config_file.writing import setting, write_value

SAMPLE: Final = Path("etc/llmgw.toml")
PAGE: Final = Path("docs/configuration.md")
_WIDTH: Final = 96


def sample() -> str:
    """A file that changes nothing: every key with its default as a comment.

    Prose begins with "# "; what can be uncommented begins with "#" alone.
    """
    plain = ("\n".join(_sample_section(one)) for one in (*PLAIN, AUTH, MODELS))
    return "\n".join([FILE_HEAD, *plain, *_sample_tables()])


def page() -> str:
    return "\n".join([PAGE_HEAD, *(_page_section(one) for one in SECTIONS)])


def written_default(section: Section[object], one: Field) -> Toml | None:
    """The default as it would be written; None where a key has none, or no form for it."""
    default = section.default_of(one)
    if default is MISSING or (default is None and not one.kind.shows_none):
        return None
    return one.kind.show(default)


def _sample_section(section: Section[object]) -> Iterator[str]:
    yield from _prose(section.doc)
    yield f"[{section.path}]" if section in PLAIN else f"#[{section.path}]"
    for one in section.fields:
        default = written_default(section, one)
        shown = NO_DEFAULT[f"{section.path}.{one.key}"] if default is None else default
        yield from _prose(_doc(one))
        yield f"#{setting(one.key, shown)}"
    yield ""


def _sample_tables() -> Iterator[str]:
    sections = {one.path: one for one in SECTIONS}
    told: set[str] = set()
    for path, table in TABLES:
        section = sections[path]
        docs = {f"{path}.{one.key}": _doc(one) for one in section.fields}
        yield from _prose(section.doc) if path not in told else ()
        yield f"#[[{path}]]"
        for key, value in table.items():
            yield from _prose(docs[f"{path}.{key}"]) if f"{path}.{key}" not in told else ()
            yield f"#{setting(key, value)}"
        told |= {path, *(f"{path}.{key}" for key in table)}
        yield ""


def _page_section(section: Section[object]) -> str:
    head = f"[[{section.path}]]" if section.many else f"[{section.path}]"
    rows = [
        f"| `{one.key}` | {one.kind.name} | {_page_default(section, one)} | {_doc(one)} |"
        for one in section.fields
    ]
    title = ["| key | type | default | |", "|---|---|---|---|"] if rows else []
    return "\n".join([f"## `{head}`", "", section.doc, "", *title, *rows, *([""] if rows else [])])


def _page_default(section: Section[object], one: Field) -> str:
    if one.required:
        return "required"
    if one.default:
        return one.default
    default = written_default(section, one)
    return "" if default is None else f"`{write_value(default)}`"


def _doc(one: Field) -> str:
    return f"{one.doc} Takes effect at the next start." if one.restart else one.doc


def _prose(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + len(word) >= _WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line


if __name__ == "__main__":
    SAMPLE.write_text(sample(), "utf-8")
    PAGE.write_text(page(), "utf-8")
