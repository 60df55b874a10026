"""What is wrong with a configuration, and what is only odd: each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the file can't be loaded with."""

    place: str  # as `nodes[2].url`; tables of a list are counted from 0; "" is the whole file
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return _line(self.place, self.message, self.hint)


@dataclass(frozen=True, slots=True)
class Note:
    """A warning: the file is loaded, but perhaps not as it was meant."""

    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return _line(self.place, self.message, self.hint)


class ConfigError(Exception):
    """All the faults of one file; no text of them quotes a secret."""

    def __init__(self, faults: Sequence[Fault], notes: Sequence[Note] = ()) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)
        self.notes = tuple(notes)

    def lines(self, file: object) -> tuple[str, ...]:
        """One for each fault, with the name of the file; faults of all of it name it already."""
        return tuple(f"{file}: {one}" if one.place else str(one) for one in self.faults)


class FileMissing(ConfigError):
    """There is no such file at all."""


class Unfit(Exception):
    """One value can't be taken; whoever knows its place makes a fault of it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(slots=True)
class Report:
    """Collects what is found while the rest of the file is still being read."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def fault(self, place: str, message: str, hint: str = "") -> None:
        self.faults.append(Fault(place, message, hint))

    def note(self, place: str, message: str, hint: str = "") -> None:
        self.notes.append(Note(place, message, hint))

    def raise_faults(self) -> None:
        if self.faults:
            raise ConfigError(self.faults, self.notes)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, as a hint; "" if none is near."""
    near = get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""


def _line(place: str, message: str, hint: str) -> str:
    line = f"{place}: {message}" if place else message
    return f"{line} ({hint})" if hint else line
