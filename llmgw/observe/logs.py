"""Log lines: JSON for machines, logfmt for a terminal; nothing of a client or an upstream in them.

Our own messages are constant and carry `extra=` fields. What libraries log is cut to its template,
and exceptions to their type and frames: both may quote bytes that somebody else sent.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Final, TextIO

import orjson

from llmgw.core.config import LogConfig
from llmgw.core.errors import GatewayError, UpstreamError
from llmgw.observe.access_lines import LOGGER, AccessLines, Collected, Fields, Stencil
from llmgw.observe.timestamps import timestamp

OURS: Final = "llmgw"
MAX_FRAMES: Final = 12
MAX_FOREIGN_CHARS: Final = 200
MAX_CAUSES: Final = 4
ACCESS_EVERY: Final = 0.1  # seconds that access lines are collected
ACCESS_AT_MOST: Final = 256  # of them before they are written at once

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_PRIORITIES: Final = {  # of syslog(3), as sd-daemon(3) puts them before a line
    logging.DEBUG: "<7>",
    logging.INFO: "<6>",
    logging.WARNING: "<4>",
    logging.ERROR: "<3>",
    logging.CRITICAL: "<2>",
}
_JSON_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS
_access = logging.getLogger(LOGGER)
_handler: LineHandler | None = None


def setup(config: LogConfig, stream: TextIO) -> None:
    """Send every logger's lines to `stream`; may be called again after a reload."""
    global _handler
    if _handler is not None:
        _handler.flush()
        logging.root.removeHandler(_handler)
    _handler = LineHandler(stream, _formatter(config, stream))
    logging.root.addHandler(_handler)
    logging.raiseExceptions = False  # a broken pipe must not print a traceback to the same pipe
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(config.level.upper())
    _access.disabled = not config.access
    _handler.takes_access = _access.isEnabledFor(logging.INFO)


def is_journal(stream: TextIO) -> bool:
    """Does the stream lead to systemd's journal? JOURNAL_STREAM names its device and inode."""
    try:
        seen = os.fstat(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{seen.st_dev}:{seen.st_ino}"


def access(**fields: object) -> None:
    """One line for one answered request: ids, codes, counts and times; no query, no body.

    Formatting and writing wait for others: for each alone they would cost a third of what a
    router may take for the request.
    """
    if _handler is not None and _handler.takes_access:
        _handler.collect((time.time(), fields))


def answered(
    stencil: Stencil, size: int, seconds: float, request_id: str, overhead: float
) -> None:
    """The same for one of many that are alike."""
    if _handler is not None and _handler.takes_access:
        _handler.collect((time.time(), stencil, size, seconds, request_id, overhead))


class LineFormatter(logging.Formatter):
    """Formats the fields of a line, wherever they come from."""

    def format(self, record: logging.LogRecord) -> str:
        return self.line(fields_of(record), record.levelno)

    def line(self, fields: Fields, level: int) -> str:
        raise NotImplementedError


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines in the order in which they came; those of the access log many at once."""

    def __init__(self, stream: TextIO, formatter: LineFormatter) -> None:
        super().__init__(stream)
        self.setFormatter(formatter)
        self.takes_access = True
        self._lines = AccessLines(formatter.line)
        self._collected: list[Collected] = []

    def collect(self, one: Collected) -> None:
        """Called from the event loop, or from where there is none: then written at once."""
        self._collected.append(one)
        waiting = len(self._collected)
        if waiting == 1:
            try:
                asyncio.get_running_loop().call_later(ACCESS_EVERY, self.flush)
            except RuntimeError:
                self.flush()
        elif waiting >= ACCESS_AT_MOST:
            self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        self._write_collected()
        super().emit(record)

    def flush(self) -> None:
        with self.lock or nullcontext():
            self._write_collected()
            super().flush()

    def _write_collected(self) -> None:
        collected, self._collected = self._collected, []
        if collected:
            try:
                self.stream.write(self._lines.text(collected))
            except (OSError, ValueError):  # the pipe is broken, or closed: nobody reads
                return


class JsonFormatter(LineFormatter):
    """One JSON object a line; the extra fields stand beside `message`."""

    def line(self, fields: Fields, level: int) -> str:
        try:
            text = orjson.dumps(fields, _shown, _JSON_OPTIONS).decode()
        except TypeError:  # a lone surrogate, or an integer over 64 bits
            text = json.dumps(fields, default=_shown, separators=(",", ":"))
        return text if text.isprintable() else escape(text)


class LogfmtFormatter(LineFormatter):
    """`time=... level=... message="..." key=value`, for people and grep."""

    def line(self, fields: Fields, level: int) -> str:
        return " ".join(f"{key}={_word(value)}" for key, value in fields.items())


class JournalFormatter(LineFormatter):
    """Another formatter's line behind the priority that the journal takes off again."""

    def __init__(self, inner: LineFormatter) -> None:
        super().__init__()
        self._inner = inner

    def line(self, fields: Fields, level: int) -> str:
        return _PRIORITIES.get(level, "<6>") + self._inner.line(fields, level)


def fields_of(record: logging.LogRecord) -> Fields:
    """What a line says, in order; a field of the record never hides one of ours."""
    fields: Fields = {
        "time": timestamp(record.created),
        "level": record.levelname.lower(),
        "message": _message(record),
        "logger": record.name,
    }
    for key, value in vars(record).items():
        if key not in _STANDARD and key not in fields:
            fields[key] = value
    if record.exc_info and record.exc_info[1] is not None:
        fields |= exception_fields(record.exc_info[1])
    return fields


def exception_fields(error: BaseException) -> Fields:
    """Type, causes and frames. The text is kept only where it is known to be ours."""
    fields: Fields = {
        "error": _type_name(error),
        "frames": _frames(error.__traceback__),
    }
    if isinstance(error, GatewayError | UpstreamError):
        fields["error_detail"] = str(error)
    if causes := [_type_name(one) for one in _causes(error)]:
        fields["error_causes"] = causes
    return fields


def escape(text: str) -> str:
    """Unprintable characters as JSON escapes: one line stays one line, on any terminal."""
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _formatter(config: LogConfig, stream: TextIO) -> LineFormatter:
    wants_logfmt = config.format == "logfmt" or (config.format == "auto" and stream.isatty())
    formatter = LogfmtFormatter() if wants_logfmt else JsonFormatter()
    return JournalFormatter(formatter) if is_journal(stream) else formatter


def _message(record: logging.LogRecord) -> str:
    if record.name == OURS or record.name.startswith(f"{OURS}."):
        return record.getMessage()
    first, _, _ = str(record.msg).partition("\n")
    return first[:MAX_FOREIGN_CHARS]  # the arguments may be bytes of a client


def _frames(traceback: TracebackType | None) -> list[str]:
    frames = [
        f"{_place(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(traceback)
    ]
    return frames[-MAX_FRAMES:]


def _place(filename: str) -> str:
    path = Path(filename)
    if path.is_relative_to(_PACKAGE):
        return str(path.relative_to(_PACKAGE.parent))
    return "/".join(path.parts[-2:])


def _causes(error: BaseException) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None:
            return
        yield cause
        error = cause


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _shown(value: object) -> object:
    if isinstance(value, BaseException):
        return _type_name(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def _word(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(_shown(value))
    if text and text.isprintable() and not any(one in text for one in ' ="\\'):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escape(quoted)}"'


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{pair}" for pair in pairs)
