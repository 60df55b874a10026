"""What a reload would change, in lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from llmgw.config_file.assembly import SECTIONS
from llmgw.config_file.faults import Note
from llmgw.config_file.rendering import render
from llmgw.core.config import Config, Upstream

Raw = Mapping[str, object]

_NOUNS: Final = {  # what one table of a list is called, and the key it is known by
    "nodes": ("node", "url"),
    "accounts": ("account", "name"),
    "models.available": ("model", "name"),
    "pools": ("pool", "name"),
    "auth.keys": ("key", "name"),
    "admin.users": ("operator", "name"),
}
_ORDER: Final = tuple(section.path for section in SECTIONS if "." not in section.path)
_ADDED: Final = {
    "node": "added, starts healthy and untried",
    "account": "added, listed at once",
}
_REMOVED: Final = {
    "node": "removed, its running requests finish",
    "account": "removed, its running requests finish",
    "key": "removed, unknown from then on",
}
_RESTART: Final = frozenset(
    f"{section.path}.{one.key}" for section in SECTIONS for one in section.fields if one.restart
)


def diff(old: Config, new: Config) -> list[str]:
    """One line per change, empty if there is none; no line shows a secret."""
    return [*diff_rendered(render(old), render(new)), *_hidden_changes(old, new)]


def diff_rendered(old: Raw, new: Raw) -> list[str]:
    """The same of two renderings, which do not hold the secrets: a new key is not seen."""
    return [
        line for name in dict.fromkeys((*_ORDER, *old, *new)) for line in _section(name, old, new)
    ]


def until_restart(running: Config, fresh: Config) -> tuple[Config, tuple[Note, ...]]:
    """`fresh` as far as a reload can go: what only a start takes keeps its running value, and is
    told."""
    notes = []
    for path in sorted(_RESTART):
        section, _, key = path.partition(".")
        kept, wanted = getattr(getattr(running, section), key), getattr(fresh, section)
        if getattr(wanted, key) != kept:
            fresh = replace(fresh, **{section: replace(wanted, **{key: kept})})
            notes.append(Note(path, "takes effect at the next start"))
    return fresh, tuple(notes)


def _section(name: str, old: Raw, new: Raw) -> Iterator[str]:
    if name in _NOUNS:
        yield from _tables(name, old.get(name), new.get(name), is_implicit=_is_implicit(old, new))
        return
    if name == "auth" and (name in old) != (name in new):
        yield _auth_line(added=name in new)
    before, after = _table(old.get(name)), _table(new.get(name))
    for key in dict.fromkeys((*before, *after)):
        path = f"{name}.{key}"
        if path in _NOUNS:
            yield from _tables(path, before.get(key), after.get(key))
        elif before.get(key) != after.get(key):
            later = "; takes effect at the next start" if path in _RESTART else ""
            yield f"{path}: {_show(before.get(key))} -> {_show(after.get(key))}{later}"


def _tables(path: str, old: object, new: object, *, is_implicit: bool = False) -> Iterator[str]:
    noun, identity = _NOUNS[path]
    before, after = _by(identity, old), _by(identity, new)
    for one in [key for key in before if key not in after]:
        yield f"{_title(noun, before[one])} {_REMOVED.get(noun, 'removed')}"
    for one in [key for key in after if key not in before]:
        yield f"{_title(noun, after[one])} {_ADDED.get(noun, 'added')}"
    for one in [key for key in after if key in before]:
        hidden = {"assignments"} if is_implicit else set()
        changes = [*_key_changes(before[one], after[one], hidden)]
        if changes:
            yield f"{_title(noun, before[one])}: {', '.join(changes)}"


def _key_changes(before: Raw, after: Raw, hidden: set[str]) -> Iterator[str]:
    for key in dict.fromkeys((*before, *after)):
        if key not in hidden and before.get(key) != after.get(key):
            yield f"{key} {_show(before.get(key))} -> {_show(after.get(key))}"


def _title(noun: str, table: Raw) -> str:
    url = f" ({table['url']})" if noun == "node" else ""
    return f'{noun} "{table.get("name")}"{url}'


def _auth_line(*, added: bool) -> str:
    if added:
        return "auth: added, clients without a key are refused"
    return "auth: removed, every client is let in unless there is a keys file"


def _is_implicit(old: Raw, new: Raw) -> bool:
    """Both have the one pool of all nodes, whose changes are those of the nodes."""
    return all(_members(one) == [list(_by("name", one.get("nodes")))] for one in (old, new))


def _members(rendered: Raw) -> list[list[str]]:
    pools = _by("name", rendered.get("pools")).values()
    return [list(_by("upstream", pool.get("assignments"))) for pool in pools]


def _by(identity: str, tables: object) -> dict[str, Raw]:
    found = tables if isinstance(tables, list) else []
    return {str(one.get(identity)): one for one in found if isinstance(one, dict)}


def _table(found: object) -> Raw:
    return found if isinstance(found, dict) else {}


def _show(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        value = list(_by("upstream", value))
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _hidden_changes(old: Config, new: Config) -> Iterator[str]:
    before = {(type(one), one.name): one for one in old.upstreams}
    for one in new.upstreams:
        same = before.get((type(one), one.name))
        if same is not None and _secrets(same) != _secrets(one):
            yield f'upstream "{one.name}": its key or a header has another value'


def _secrets(upstream: Upstream) -> tuple[object, ...]:
    return upstream.credential, getattr(upstream, "headers", ())
