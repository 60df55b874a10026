"""Plain, short, pretty lines on a terminal; the same words without colour in a pipe."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

INDENT: Final = "   "
BOLD: Final = "1"
DIM: Final = "2"
GREEN: Final = "32"
RED: Final = "31"
CYAN: Final = "36"
MAX_COLUMNS: Final = 100


class Narrator:
    """Writes to a stream; colours only a terminal, and not where NO_COLOR is set."""

    def __init__(self, out: TextIO, environment: Mapping[str, str]) -> None:
        self._out = out
        dumb = environment.get("TERM") == "dumb" or bool(environment.get("NO_COLOR"))
        self._colours = out.isatty() and not dumb
        self._columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
        self._column = 0

    def title(self, text: str) -> None:
        self.line(self._paint(text, BOLD))

    def heading(self, text: str) -> None:
        self.line("")
        self.line(self._paint(text, BOLD))

    def fact(self, name: str, value: str) -> None:
        self.line(f"{INDENT}{name:<9} {self._paint(value, CYAN)}")

    def passed(self, text: str) -> None:
        self.line(f"{INDENT}{self._paint(self._mark('✓', 'ok:'), GREEN)} {text}")

    def failed(self, text: str) -> None:
        self.line(f"{INDENT}{self._paint(self._mark('✗', 'failed:'), RED)} {text}")

    def note(self, text: str) -> None:
        self.line(f"{INDENT}{self._paint(text, DIM)}")

    def commands(self, commands: Iterable[tuple[str, str]]) -> None:
        """Each with what it does, on lines of its own, so that it can be copied whole."""
        for command, meaning in commands:
            self.note(f"# {meaning}")
            self.line(f"{INDENT}{self._paint(command, CYAN)}")

    def word(self, word: str) -> None:
        """The next piece of an answer, at once, wrapped at the width of the terminal."""
        if not word:
            return
        if self._column and self._column + len(word.rstrip()) > self._columns:
            self.end_words()
        if not self._column:
            self._write(f"{INDENT}{self._paint(self._mark('│', '|'), DIM)} ")
            self._column = len(INDENT) + 2
        self._write(word)
        self._column += len(word)

    def end_words(self) -> None:
        if self._column:
            self._write("\n")
            self._column = 0

    def line(self, text: str) -> None:
        self._write(f"{text}\n")

    def _mark(self, sign: str, word: str) -> str:
        return sign if self._colours else word

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text

    def _write(self, text: str) -> None:
        encoding = self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()
