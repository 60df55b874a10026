"""What the body of `GET /v1/models` says: names, or why it says nothing that can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class Page:
    """One answer: ids in order without duplicates, and where the next one begins."""

    names: tuple[str, ...]
    max_lens: tuple[tuple[str, int], ...] = ()
    after: str | None = None  # the cursor of the next page, where the provider has one


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Not a list. `error` is ours: a body's own words go nowhere."""

    error: str


def parse_listing(body: bytes) -> Page | Unreadable:
    """Only a JSON object with an array `data` is a list.

    Entries without a string `id`, or with an empty one, are skipped; a list of which no entry
    is left is not an empty one: it is one that was not understood.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Unreadable("the list is not JSON")
    if not isinstance(document, dict):
        return Unreadable("the list is not a JSON object")
    entries = document.get("data")
    if not isinstance(entries, list):
        return Unreadable("the list has no data array")
    models = _models(entries)
    if entries and not models:
        return Unreadable("no entry of the list has an id")
    max_lens = tuple((name, size) for name, size in models.items() if size is not None)
    return Page(tuple(models), max_lens, _cursor(document, models))


def _models(entries: list[object]) -> dict[str, int | None]:
    """The first entry of a name counts."""
    models: dict[str, int | None] = {}
    for entry in entries:
        if isinstance(entry, dict):
            name = entry.get("id")
            if isinstance(name, str) and name and name not in models:
                models[name] = _max_len(entry.get("max_model_len"))
    return models


def _max_len(value: object) -> int | None:
    """A JSON true is an int to Python, and no length."""
    return value if isinstance(value, int) and value is not True and value > 0 else None


def _cursor(document: dict[str, object], models: dict[str, int | None]) -> str | None:
    if document.get("has_more") is not True:
        return None
    last = document.get("last_id")
    return last if isinstance(last, str) and last else next(reversed(models), None)
