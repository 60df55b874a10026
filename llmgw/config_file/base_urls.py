"""The base URL of an upstream: scheme, host, port and the prefix before `/v1`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from llmgw.config_file.addresses import in_brackets, parse_ipv6, parse_port
from llmgw.config_file.faults import Unfit
from llmgw.core.config import BaseUrl

URL_FORM: Final = 'a base URL such as "http://10.0.0.5:8000"'
_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"(?!-)[a-z0-9_.-]{1,253}", re.ASCII)
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*", re.ASCII)
_ENDPOINTS: Final = re.compile(r"/v1/[a-z_/]+$", re.ASCII)


@dataclass(frozen=True, slots=True)
class GivenUrl:
    """A base URL as it is meant, and whether `/v1` was taken off its end to get there."""

    url: BaseUrl
    trimmed: bool = False


def parse_base_url(text: str) -> GivenUrl:
    """Messages never quote the URL: somebody may have written a password into it."""
    parts = _split(text.strip())
    _refuse_extras(parts)
    host, port = _host_and_port(parts)
    prefix = parts.path.rstrip("/")
    trimmed = prefix.endswith("/v1")
    prefix = prefix.removesuffix("/v1").rstrip("/")
    if not _PREFIX.fullmatch(prefix):
        raise Unfit("the path of the URL has characters or empty parts that no path has")
    return GivenUrl(BaseUrl(parts.scheme, host, port, prefix), trimmed)


def write_base_url(url: BaseUrl) -> str:
    """What reads back as the same URL: a prefix that itself ends in `/v1` needs a second one."""
    return f"{url}/v1" if url.prefix.endswith("/v1") else str(url)


def parse_legacy_host(text: str) -> str:
    """The `ip` of a node in the older form: an address, with or without brackets, or a name."""
    bare = text.strip().removeprefix("[").removesuffix("]").lower()
    if bare.count(":") > 1:
        return parse_ipv6(bare)
    if not _HOST.fullmatch(bare):
        raise Unfit("must be an address without scheme and port", 'new files write "url"')
    return bare


def _split(text: str) -> SplitResult:
    if "://" not in text:
        raise Unfit(f"must be {URL_FORM}", "the scheme is missing: http:// or https://")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise Unfit(f"must be {URL_FORM}") from None
    if parts.scheme not in _PORTS:
        raise Unfit("the scheme of the URL must be http or https")
    return parts


def _refuse_extras(parts: SplitResult) -> None:
    if "@" in parts.netloc:
        raise Unfit(
            "a URL holds no user name and password", "use api_key_env or api_key_file instead"
        )
    if parts.query or parts.fragment:
        raise Unfit("a base URL has no query and no fragment")
    if found := _ENDPOINTS.search(parts.path.rstrip("/")):
        raise Unfit(
            "must be the part before /v1, not the URL of one endpoint", f"leave out {found[0]}"
        )


def _host_and_port(parts: SplitResult) -> tuple[str, int]:
    host, port = parts.netloc, ""
    if not host.endswith("]") and ":" in host:
        host, _, port = host.rpartition(":")
    number = parse_port(port) if port else _PORTS[parts.scheme]
    if number == 0:
        raise Unfit("port 0 can't be connected to")
    if host.startswith("["):
        return parse_ipv6(host[1:].removesuffix("]")), number
    if ":" in host:
        raise Unfit("an IPv6 address stands in brackets", f'"http://{in_brackets("::1")}:8000"')
    if not _HOST.fullmatch(host.lower()):
        raise Unfit(f"must be {URL_FORM}", "" if host else "the host is missing")
    return host.lower(), number
