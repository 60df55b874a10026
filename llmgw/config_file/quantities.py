"""Durations ("1m30s") and sizes ("32MiB"), from text and back."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from llmgw.config_file.faults import Unfit

DURATION_FORM: Final = 'a duration such as "500ms", "3s", "1m30s", "12h" or "30d"'
SIZE_FORM: Final = 'a size: bytes as an integer, or "256KiB", "32MiB", "1GiB"'

_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6}
_BYTES: Final = {
    "GiB": 1024**3,
    "MiB": 1024**2,
    "KiB": 1024,
    "GB": 1000**3,
    "MB": 1000**2,
    "kB": 1000,
    "B": 1,
}
_BYTES_OF: Final = {unit.lower(): size for unit, size in _BYTES.items()}
_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(us|µs|ms|s|m|h|d)", re.ASCII)
_SIZE: Final = re.compile(r"([0-9]{1,18})(?: ?([A-Za-z]{1,3}))?", re.ASCII)
_LONGEST: Final = 100 * 365 * 86400.0
_LARGEST: Final = 2**50


def parse_duration(value: object) -> float:
    """Seconds. A bare number is refused, for nothing says whether it means seconds."""
    if not isinstance(value, str):
        raise Unfit(f"must be {DURATION_FORM}", _unit_hint(value))
    text = value.strip().replace("µs", "us")
    parts = list(_PART.finditer(text))
    if "".join(part.group() for part in parts) != text or not _falls(parts):
        zero = 'zero is "0s"' if text == "0" else ""
        raise Unfit(f"must be {DURATION_FORM}", zero)
    seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    if seconds > _LONGEST:
        raise Unfit("is longer than a hundred years")
    return round(seconds, 6)


def format_duration(seconds: float) -> str:
    """The shortest form that parses back to the same number of microseconds."""
    rest = round(seconds * 1e6)
    if rest % 1000:
        return f"{rest}us"
    rest //= 1000
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def parse_size(value: object) -> int:
    """Bytes. KiB, MiB and GiB are powers of 1024; kB, MB and GB of 1000."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unfit(f"must be {SIZE_FORM}")
    size = value if isinstance(value, int) else _parse_size_text(value.strip())
    if size < 0:
        raise Unfit("must not be negative")
    if size > _LARGEST:
        raise Unfit("is larger than a pebibyte")
    return size


def format_size(size: int) -> int | str:
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return size


def _unit_hint(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'with its unit: "{value}s"?' if is_number else ""


def _falls(parts: list[re.Match[str]]) -> bool:
    """There is a part, and each unit is smaller than the one before it."""
    sizes = [_SECONDS[part[2]] for part in parts]
    return bool(sizes) and all(one > two for one, two in pairwise(sizes))


def _parse_size_text(text: str) -> int:
    match = _SIZE.fullmatch(text)
    unit = _BYTES_OF.get((match[2] or "B").lower()) if match else None
    if match is None or unit is None:
        raise Unfit(f"must be {SIZE_FORM}")
    return int(match[1]) * unit
