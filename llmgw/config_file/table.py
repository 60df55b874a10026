"""What a table of the file may hold, as data: reading, docs and examples all come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Generic, TypeVar

from llmgw.config_file.kinds import Kind

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Field:
    """One key; its default is that of the attribute of the same name of what the table makes."""

    key: str
    kind: Kind
    doc: str
    required: bool = False
    ignored: bool = False  # accepted and checked, but nothing is made of it
    restart: bool = False  # a reload can't change it
    default: str = ""  # said in the documentation where the value alone does not tell


@dataclass(frozen=True, slots=True)
class Section(Generic[T_co]):
    """One table, or a list of tables, of the file."""

    path: str  # as "gateway" or "auth.keys"
    doc: str
    makes: type[T_co]
    fields: tuple[Field, ...]
    many: bool = False
    children: tuple[str, ...] = ()  # keys that hold tables of their own
    refused: Mapping[str, str] = field(default_factory=dict)  # tempting keys, and what to do

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2]

    def default_of(self, one: Field) -> object:
        """The value without the key; `MISSING` where it has to be given."""
        known = getattr(self.makes, "__dataclass_fields__", {})
        return known[one.key].default if one.key in known else MISSING
