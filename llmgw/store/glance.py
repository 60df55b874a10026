"""A question of one statement that is asked again and again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncEngine


class Glance:
    """Its text is made once. Values are `bindparam`s by name."""

    def __init__(self, select: Select[Any]) -> None:
        self.select = select
        self._text: tuple[str, tuple[str, ...]] | None = None

    def of(self, engine: AsyncEngine) -> tuple[str, tuple[str, ...]]:
        """For a driver that takes values by their place: the text, and whose these are."""
        if self._text is None:
            compiled = self.select.compile(dialect=engine.dialect)
            self._text = str(compiled), tuple(compiled.positiontup or ())
        return self._text
