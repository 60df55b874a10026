"""The kinds of values that a key can have: how each is read, written and described."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final, TypeVar, cast

from llmgw.config_file.addresses import LISTEN_FORM, format_listen, parse_listen
from llmgw.config_file.faults import Unfit, nearest
from llmgw.config_file.quantities import format_duration, format_size, parse_duration, parse_size
from llmgw.core.admin_password import MalformedHash, parse_hash
from llmgw.core.config import Listen
from llmgw.core.types import Headers, Strategy

Toml = str | int | float | bool | list["Toml"] | dict[str, "Toml"]
T = TypeVar("T")

OFF: Final = "off"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)  # RFC 9110, section 5.6.2
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SECRET_HEADERS: Final = frozenset(
    {
        "api-key",
        "authorization",
        "cookie",
        "ocp-apim-subscription-key",
        "proxy-authorization",
        "x-api-key",
        "x-goog-api-key",
    }
)
_FRAMING_HEADERS: Final = frozenset(
    {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value; `parse` raises `Unfit`, `show` is its inverse."""

    name: str  # in the documentation
    parse: Callable[[object], object]
    show: Callable[[object], Toml]
    shows_none: bool = False  # None has a written form too


def kind(name: str, parse: Callable[[object], T], show: Callable[[T], Toml]) -> Kind:
    """A value is only ever shown by the kind that parsed it, hence the cast."""
    return Kind(name, parse, cast(Callable[[object], Toml], show))


def off_or(inner: Kind) -> Kind:
    """`"off"` is None, and None is shown as `"off"`."""
    return Kind(
        f'{inner.name}, or "off"',
        lambda value: None if value == OFF else inner.parse(value),
        lambda value: OFF if value is None else inner.show(value),
        shows_none=True,
    )


def integer(minimum: int = 1, maximum: int = 2**31 - 1) -> Kind:
    return kind("integer", lambda value: _parse_integer(value, minimum, maximum), int)


def choice(*words: str) -> Kind:
    listed = ", ".join(f'"{word}"' for word in words)
    return kind(f"one of {listed}", lambda value: _parse_choice(value, words), str)


def names(known: Collection[str] | None = None) -> Kind:
    """A list of strings; `known` are the only ones it may hold."""
    return kind("list of strings", lambda value: _parse_names(value, known), list[Toml])


def parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("must be a string", _quote_hint(value))
    if not value.strip() or _CONTROL.search(value):
        raise Unfit("must be a string with text in it and no control characters")
    return value


def parse_name(value: object) -> str:
    """What stands in logs, metrics and ids: no blanks around it, and not endless."""
    text = parse_text(value)
    if text != text.strip() or not text.isprintable() or len(text) > 200:
        raise Unfit("must be a name of at most 200 printable characters, no blanks around it")
    return text


def _parse_name_or_none(value: object) -> str | None:
    """Files of the older gateway write `ring = ""` and `default = ""` where there is none."""
    return None if value == "" else parse_name(value)


def parse_digest(value: object) -> str:
    """The value is never quoted: somebody may have written the token itself."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise Unfit('must be "sha256:" and 64 lower-case hex digits', "llmgw key new makes one")
    return value.removeprefix("sha256:")


def parse_header_value(value: str) -> str:
    """RFC 9110, section 5.5, as far as it can be sent: latin-1 without control characters."""
    if _CONTROL.search(value) or not value or value != value.strip():
        raise Unfit("has line breaks, control characters, blanks around it, or is empty")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise Unfit("has characters that no HTTP header can carry") from None
    return value


def _parse_path(value: object) -> str:
    text = parse_text(value)
    if not text.startswith("/") or not text.isascii() or any(char in text for char in " #"):
        raise Unfit('must be a path such as "/health"')
    return text


def _parse_password(value: object) -> str:
    """A hash; the value is never quoted, since somebody may have written the password."""
    try:
        return str(parse_hash(value if isinstance(value, str) else ""))
    except MalformedHash:
        hint = "llmgw admin password makes one"
        raise Unfit("must be a scrypt hash, not the password itself", hint) from None


def _parse_strategy(value: object) -> Strategy:
    return Strategy(_parse_choice(value, [one.value for one in Strategy]))


def _parse_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit("must be true or false, without quotes")
    return value


def _parse_integer(value: object, minimum: int, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit("must be an integer", "without quotes" if _is_digits(value) else "")
    if value < minimum:
        raise Unfit(f"must be at least {minimum}")
    if value > maximum:
        raise Unfit(f"must be at most {maximum}")
    return value


def _parse_price(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise Unfit("must be a number such as 0.25, and not negative")
    return float(value)


def _parse_share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Unfit("must be a number from 0 to 1")
    return float(value)


def _parse_choice(value: object, words: Collection[str]) -> str:
    if isinstance(value, str) and value in words:
        return value
    listed = ", ".join(f'"{word}"' for word in words)
    raise Unfit(
        f"must be one of {listed}", nearest(value, words) if isinstance(value, str) else ""
    )


def _parse_names(value: object, known: Collection[str] | None) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit("must be a list of strings", f'["{value}"]?' if _is_word(value) else "")
    found = tuple(dict.fromkeys(parse_name(one) for one in value))
    for one in found:
        if known is not None and one not in known:
            raise Unfit(f'"{one}" is none of the known ones', nearest(one, known))
    return found


def _parse_positive_duration(value: object) -> float:
    seconds = parse_duration(value)
    if seconds <= 0:
        raise Unfit("must be longer than nothing")
    return seconds


def _parse_positive_size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise Unfit("must be at least one byte")
    return size


def _parse_listens(value: object) -> tuple[Listen, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        raise Unfit(f"must be {LISTEN_FORM}, or a list of them")
    found = tuple(parse_listen(one) for one in words)
    if len(set(found)) < len(found):
        raise Unfit("names one address twice")
    return found


def _show_listens(listens: tuple[Listen, ...]) -> Toml:
    if len(listens) == 1:
        return format_listen(listens[0])
    return [format_listen(one) for one in listens]


def _parse_headers(value: object) -> Headers:
    if not isinstance(value, dict):
        raise Unfit('must be a table such as { "x-team" = "search" }')
    return tuple((_parse_header_name(name), _header_text(value[name])) for name in value)


def _parse_header_name(name: str) -> str:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        raise Unfit("has a header name with characters that none can have")
    if lower in _SECRET_HEADERS:
        raise Unfit(f"{lower} is a credential", "use api_key_env or api_key_file, and auth")
    if lower in _FRAMING_HEADERS:
        raise Unfit(f"{lower} is the connection's own and is set by the gateway")
    return lower


def _header_text(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("has a header value that is no string")
    return parse_header_value(value)


def _parse_labels(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise Unfit('must be a table such as { team = "search" }')
    return tuple((parse_name(name), parse_name(value[name])) for name in value)


def _parse_moment(value: object) -> float:
    """Unix seconds; without an offset UTC is meant, and a date ends as it begins."""
    moment: object = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise Unfit("must be a date and time such as 2030-01-31T00:00:00Z")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _show_moment(seconds: float) -> Toml:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _show_pairs(pairs: tuple[tuple[str, str], ...]) -> Toml:
    return dict(pairs)


def _quote_hint(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'in quotes: "{value}"?' if is_number else ""


def _is_digits(value: object) -> bool:
    return isinstance(value, str) and value.isdecimal()


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and '"' not in value


TEXT: Final = kind("string", parse_text, str)
NAME: Final = kind("string", parse_name, str)
NAME_OR_NONE: Final = kind("string", _parse_name_or_none, str)
BOOL: Final = kind("true or false", _parse_bool, bool)
PORT: Final = integer(1, 65535)
PRICE: Final = kind("number, not negative", _parse_price, float)
SHARE: Final = kind("number from 0 to 1", _parse_share, float)
DURATION: Final = kind("duration", _parse_positive_duration, format_duration)
PAUSE: Final = kind("duration, may be 0s", parse_duration, format_duration)
SIZE: Final = kind("size", _parse_positive_size, format_size)
LISTEN: Final = kind("address, or list of them", _parse_listens, _show_listens)
DIGEST: Final = kind("digest", parse_digest, lambda digest: f"sha256:{digest}")
MOMENT: Final = kind("date and time", _parse_moment, _show_moment)
HEADERS: Final = kind("table of headers", _parse_headers, _show_pairs)
LABELS: Final = kind("table of strings", _parse_labels, _show_pairs)
PATH: Final = kind("path", _parse_path, str)
PASSWORD: Final = kind("scrypt hash", _parse_password, str)
STRATEGY: Final = kind(
    "one of " + ", ".join(f'"{one}"' for one in Strategy), _parse_strategy, lambda one: one.value
)
