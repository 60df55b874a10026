"""TOML as text that people go on editing: one line a key, one table header a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date, time

Table = Mapping[str, object]


def write_document(root: Table) -> str:
    """Keys before tables. Short tables of a list stay tables, which `tomli_w` puts on one line."""
    return "\n".join(_lines("", root)).lstrip("\n") + "\n"


def setting(key: str, value: object) -> str:
    return f"{key} = {write_value(value)}"


def write_value(value: object) -> str:
    """On one line. TOML writes strings, numbers and booleans as JSON does, but for DEL."""
    match value:
        case dict():
            inner = ", ".join(f"{_quote(key)} = {write_value(value[key])}" for key in value)
            return f"{{ {inner} }}" if inner else "{}"
        case list():
            return f"[{', '.join(map(write_value, value))}]"
        case str():
            return _quote(value)
        case date() | time():
            return value.isoformat()
        case _:
            return json.dumps(value)


def _lines(path: str, table: Table) -> Iterator[str]:
    """Below the second level a table is a value: labels, headers."""
    depth = path.count(".") + bool(path)
    inner = [key for key, value in table.items() if _is_tables(value) or _is_table(value, depth)]
    for key, value in table.items():
        if key not in inner:
            yield setting(key, value)
    for key in inner:
        value, where = table[key], f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from ("", f"[{where}]", *_lines(where, value))
        elif isinstance(value, list):
            for one in value:
                yield from ("", f"[[{where}]]", *_lines(where, one))


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _is_table(value: object, depth: int) -> bool:
    return isinstance(value, dict) and depth == 0


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
