"""Addresses to listen on: ":8000", "host:port", "[::1]:8000", "unix:/run/llmgw/http.sock"."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Final

from llmgw.config_file.faults import Unfit
from llmgw.core.config import Listen

LISTEN_FORM: Final = '":8000", "host:8000", "[::1]:8000" or "unix:/path"'
ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised here, never bound
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_UNIX_PATH_MAX: Final = 107  # bytes of sun_path without its final zero, unix(7)


def parse_listen(text: str) -> Listen:
    if text.startswith("unix:"):
        return _parse_unix(text.removeprefix("unix:"))
    host, colon, port = text.rpartition(":")
    if not colon:
        hint = f'":{text}"?' if text.isdecimal() else ""
        raise Unfit(f"must be {LISTEN_FORM}", hint)
    return Listen(_parse_host(host), parse_port(port))


def format_listen(listen: Listen) -> str:
    if listen.path is not None:
        return f"unix:{listen.path}"
    return f"{in_brackets(listen.host)}:{listen.port}"


def parse_port(text: str) -> int:
    """0 is allowed: the system then chooses."""
    digits = text.lstrip("0")[:6] or text[:1]  # six tell that it is too high, however long it is
    if not (text.isascii() and text.isdecimal()) or int(digits) > 65535:
        raise Unfit("the port must be a number from 0 to 65535")
    return int(digits)


def in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(listen: Listen) -> bool:
    """Nobody but this machine can reach it."""
    if listen.path is not None or listen.host == "localhost":
        return True
    return listen.host == "::1" or listen.host.startswith("127.")


def reaches(listen: Listen, host: str, port: int, own_names: frozenset[str] = frozenset()) -> bool:
    """Whether a connection to `host` and `port` from this machine arrives at this listener.

    `own_names` are names of this machine. Names are compared, never looked up: a slow resolver
    must not hold up a reload.
    """
    if listen.path is not None or port != listen.port or port == 0:
        return False
    targets = _addresses(host)
    if listen.host in ANY:
        return host.lower() in own_names or any(
            _covers(listen.host, one) and is_own_address(one) for one in targets
        )
    return bool(targets & _addresses(listen.host))


def is_own_address(host: str) -> bool:
    """Whether this is an IP address, and one of this machine's.

    Connecting a datagram socket sends nothing: it makes the kernel choose the source address,
    and for an address of its own it chooses that address.
    """
    try:
        address = ip_address(host)
        if address.is_loopback:
            return True
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            return bool(probe.getsockname()[0] == host)
    except (OSError, ValueError):  # ValueError: a name
        return False


def _parse_unix(path: str) -> Listen:
    if not path.startswith("/") or "\0" in path:
        raise Unfit("a unix socket needs an absolute path", '"unix:/run/llmgw/http.sock"')
    if len(path.encode()) > _UNIX_PATH_MAX:
        raise Unfit(f"the path of a unix socket has at most {_UNIX_PATH_MAX} bytes")
    return Listen(path=path)


def _parse_host(host: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        return parse_ipv6(host[1:-1])
    if host == "*":
        return ""
    if ":" in host:
        raise Unfit("an IPv6 address stands in brackets", '"[::1]:8000"')
    if any(char in host for char in "/@ []?#") or not host.isprintable():
        raise Unfit(f"must be {LISTEN_FORM}")
    return host.lower()


def parse_ipv6(text: str) -> str:
    """In the one canonical form, so that two spellings of an address are seen to be the same."""
    try:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text))
    except (OSError, ValueError):  # ValueError: a zero byte
        raise Unfit("is no IPv6 address between its brackets") from None


def _addresses(host: str) -> frozenset[str]:
    """Where a connection to this host goes, as far as that is known without asking."""
    match host.lower():
        case "localhost":
            return _LOOPBACK
        case "0.0.0.0":  # noqa: S104 - what Linux makes of it as a destination, never bound
            return frozenset({"127.0.0.1"})
        case "::":
            return frozenset({"::1"})
        case name:
            return frozenset({name})


def _covers(any_host: str, address: str) -> bool:
    return any_host == "" or (":" in any_host) == (":" in address)
