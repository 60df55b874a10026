"""Rows on disk while the database is away: one file a process, lines of JSON, bounded.

A process holds a lock on its file for as long as it lives, so a file without one was left behind
by a crash, and whoever comes next replays it. Appending the same rows twice does no harm.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from llmgw.store.rows import Row, RowKind

FOLDER = "spool"
SUFFIX = ".rows"
MAX_BYTES = 64 * 1024 * 1024


class SpoolFull(Exception):
    """The rows can't be kept: too many of them, or the disk takes no more."""


class Spool:
    """Blocks on the disk: called off the loop, by one caller at a time."""

    def __init__(self, state_dir: Path | None, instance: str, *, limit: int = MAX_BYTES) -> None:
        """Without a folder it keeps nothing. Nothing is made before there is something to keep."""
        self._folder = None if state_dir is None else state_dir / FOLDER
        self._own = Path(f"{instance}{SUFFIX}")
        self._limit = limit
        self._file: int | None = None
        self._adopted: dict[Path, int] = {}

    def append(self, rows: Sequence[Row]) -> None:
        """On disk when this returns. Raises `SpoolFull`, and then none of the rows is kept."""
        data = b"".join(orjson.dumps([row.kind, row.values]) + b"\n" for row in rows)
        try:
            file = self._open()
            size = os.fstat(file).st_size
            if size + len(data) > self._limit:
                raise SpoolFull(f"{self._limit} bytes")
            _write_whole(file, data, size)
        except OSError as error:
            raise SpoolFull(error.strerror or type(error).__name__) from error

    def adopt(self) -> bool:
        """Take over the files of processes that are gone; whether there is anything to replay."""
        if self._folder is None or not self._folder.is_dir():
            return False
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            if path.name != self._own.name and path not in self._adopted:
                self._adopt(path)
        return any(os.fstat(file).st_size for file in self._files())

    def rows(self) -> Iterator[Row]:
        """All of them, oldest file first; what is no whole line of ours is left out."""
        for file in self._files():
            with os.fdopen(os.dup(file), "rb") as lines:
                lines.seek(0)
                yield from _parse_lines(lines)

    def clear(self) -> None:
        """After the commit of what `rows` gave."""
        for path, file in self._adopted.items():
            path.unlink(missing_ok=True)
            os.close(file)
        self._adopted.clear()
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.fsync(self._file)

    def close(self) -> None:
        """Keep what is in it for the next process; an empty file goes."""
        for file in self._adopted.values():
            os.close(file)
        self._adopted.clear()
        if self._file is None or self._folder is None:
            return
        if os.fstat(self._file).st_size == 0:
            (self._folder / self._own).unlink(missing_ok=True)
        os.close(self._file)
        self._file = None

    def _files(self) -> list[int]:
        return [*self._adopted.values(), *([] if self._file is None else [self._file])]

    def _open(self) -> int:
        if self._folder is None:
            raise SpoolFull("there is no state folder")
        if self._file is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._folder / self._own, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return self._file

    def _adopt(self, path: Path) -> None:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:  # another process was faster
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # its process lives
            os.close(file)
            return
        self._adopted[path] = file


def _write_whole(file: int, data: bytes, size: int) -> None:
    """All or nothing: a part of it would glue the next line to a torn one."""
    try:
        written = 0
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise


def _parse_lines(lines: Iterable[bytes]) -> Iterator[Row]:
    for line in lines:
        if not line.endswith(b"\n"):  # torn by a crash
            return
        try:
            kind, values = orjson.loads(line)
            yield Row(RowKind(kind), tuple(values))
        except (ValueError, TypeError):
            continue
