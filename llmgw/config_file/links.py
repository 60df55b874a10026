"""The kinds of values that are URLs: upstreams, databases, collectors, web origins."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from llmgw.config_file.base_urls import GivenUrl, parse_base_url, parse_legacy_host, write_base_url
from llmgw.config_file.faults import Unfit, nearest
from llmgw.config_file.kinds import Kind, Toml, kind, parse_text

_DATABASE_FORM: Final = '"sqlite:///PATH", "sqlite://" or "postgresql://HOST/NAME"'
_SCHEMES: Final = ("sqlite", "postgresql", "postgres")
_ORIGIN: Final = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[A-Za-z0-9_.-]+)(?::[0-9]{1,5})?")


def has_password(url: str) -> bool:
    return bool(urlsplit(url).password)


def without_password(url: str) -> str:
    """The URL with a password in it replaced, fit to be shown."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    user, _, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}:***@{host}"
    return urlunsplit(parts._replace(netloc=netloc))


def _parse_database_url(value: object) -> str:
    """Never quoted in a fault: it may hold a password."""
    text = parse_text(value)
    scheme, colon, _ = text.partition("://")
    if not colon or scheme not in _SCHEMES:
        raise Unfit(f"must be {_DATABASE_FORM}", nearest(scheme, _SCHEMES) if colon else "")
    if scheme == "sqlite":
        _check_sqlite(text)
    elif not _splits(text):
        raise Unfit(f"must be {_DATABASE_FORM}")
    return text


def _check_sqlite(text: str) -> None:
    path = text.removeprefix("sqlite://")
    if path and (not path.startswith("/") or path == "/"):
        raise Unfit("SQLite needs three slashes and a path", "sqlite:////var/lib/llmgw/llmgw.db")


def _parse_endpoint(value: object) -> str:
    text = parse_text(value)
    if not _splits(text) or urlsplit(text).scheme not in ("http", "https"):
        raise Unfit('must be a URL such as "http://127.0.0.1:4318/v1/traces"')
    if "@" in urlsplit(text).netloc:
        raise Unfit("a URL holds no user name and password")
    return text


def _splits(text: str) -> bool:
    """The standard library finds a broken port only when it is asked for."""
    try:
        parts = urlsplit(text)
        return parts.port is None or parts.hostname is not None
    except ValueError:
        return False


def _parse_origins(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit('must be a list of origins such as ["https://chat.example.org"]')
    for one in value:
        if not isinstance(one, str) or not (one == "*" or _ORIGIN.fullmatch(one)):
            raise Unfit(
                "has an entry that is no web origin", '"https://host", with no path and no slash'
            )
    return tuple(value)


def _parse_url(value: object) -> GivenUrl:
    return parse_base_url(parse_text(value))


def _parse_host(value: object) -> str:
    return parse_legacy_host(parse_text(value))


def _show_url(given: GivenUrl) -> Toml:
    return write_base_url(given.url)


BASE_URL: Final[Kind] = kind("base URL", _parse_url, _show_url)
HOST: Final = kind("host", _parse_host, str)
DATABASE_URL: Final = kind("database URL", _parse_database_url, without_password)
ENDPOINT: Final = kind("URL", _parse_endpoint, str)
ORIGINS: Final = kind("list of origins", _parse_origins, list[Toml])
