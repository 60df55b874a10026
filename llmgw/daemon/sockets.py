"""Listening sockets: made from `listen` values, or taken over from whoever started the process.

TCP listeners carry SO_REUSEPORT, so that a new address may be bound before the old one on the
same port is closed. The price is that the kernel lets two gateways of one user share a port in
silence; so a port is first tried without it.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from llmgw.core.config import Listen

BACKLOG = 4096
UNIX_MODE = 0o660  # the service's user and its group
ANY = frozenset({"", "::", "0.0.0.0"})  # noqa: S104 - names of the wildcard, compared with


class ListenFailed(Exception):
    """An address of `key` can't be listened on."""

    def __init__(self, key: str, listen: Listen, reason: str) -> None:
        super().__init__(f"{key}: can't listen on {spelled(listen)}: {reason}")


@dataclass(frozen=True, slots=True)
class Listener:
    """One address that is served, by one socket or, for a host name, by several."""

    listen: Listen
    sockets: tuple[socket.socket, ...]
    given: bool = False  # by the service manager, which keeps it open: it is never dropped

    def close(self) -> None:
        for one in self.sockets:
            one.close()

    def remove(self) -> None:
        """Close for good: a unix socket's file goes too, if it is still this one."""
        for one in self.sockets:
            if one.family == socket.AF_UNIX and not self.given and self.listen.path:
                _unlink_own(one, Path(self.listen.path))
        self.close()


def spelled(listen: Listen) -> str:
    """The address as a configuration writes it."""
    if listen.path is not None:
        return f"unix:{listen.path}"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"{host}:{listen.port}"


def open_listener(key: str, listen: Listen, *, shared_ports: Collection[int] = ()) -> Listener:
    """Bind and listen. Ports in `shared_ports` are this process's own and may be bound again."""
    try:
        if listen.path is not None:
            return Listener(listen, (_unix(Path(listen.path)),))
        return Listener(listen, _tcp(listen, tried=listen.port not in shared_ports))
    except OSError as error:
        raise ListenFailed(key, listen, _reason(error)) from error


def adopted(sock: socket.socket, *, given: bool) -> Listener:
    """A listener around a socket that already listens, under the address it is bound to."""
    sock.setblocking(False)
    name = sock.getsockname()
    listen = Listen(path=os.fsdecode(name)) if sock.family == socket.AF_UNIX else None
    return Listener(listen or Listen(host=name[0], port=name[1]), (sock,), given)


def is_same_address(one: Listen, other: Listen) -> bool:
    """All spellings of the wildcard are one host."""
    if one.path is not None or other.path is not None:
        return one.path == other.path
    hosts = {"" if host in ANY else host.lower() for host in (one.host, other.host)}
    return one.port == other.port and len(hosts) == 1


def _tcp(listen: Listen, *, tried: bool) -> tuple[socket.socket, ...]:
    opened: list[socket.socket] = []
    try:
        for family, address in _addresses(listen):
            if tried and listen.port:
                _try_alone(family, address)
            opened.append(_bound(family, address))
    except OSError:
        for one in opened:
            one.close()
        raise
    return tuple(opened)


def _addresses(listen: Listen) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """The wildcard is one dual-stack socket where there is IPv6."""
    if listen.host == "":
        if socket.has_dualstack_ipv6():
            return [(socket.AF_INET6, ("::", listen.port))]
        return [(socket.AF_INET, ("0.0.0.0", listen.port))]  # noqa: S104 - asked for by ":port"
    found = socket.getaddrinfo(
        listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    unique = dict.fromkeys((family, (str(at[0]), int(at[1]))) for family, _, _, _, at in found)
    return list(unique)


def _try_alone(family: socket.AddressFamily, address: tuple[str, int]) -> None:
    """Without SO_REUSEPORT the kernel says whether somebody listens there already."""
    with closing(_tcp_socket(family)) as trial:
        trial.bind(address)


def _bound(family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    sock = _tcp_socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if address[0] == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _tcp_socket(family: socket.AddressFamily) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def _unix(path: Path) -> socket.socket:
    """Listen under another name first, then rename: the address never lacks a listener, and
    never shows one with too wide a mode. What a dead process left is replaced."""
    _refuse_if_alive(path)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            fresh.unlink()
        sock.setblocking(False)
        sock.bind(str(fresh))
        fresh.chmod(UNIX_MODE)
        sock.listen(BACKLOG)
        fresh.replace(path)
    except OSError:
        sock.close()
        raise
    return sock


def _refuse_if_alive(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, "a file that is no socket lies there")
    except FileNotFoundError:
        return
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as caller:
        caller.settimeout(1.0)
        try:
            caller.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _unlink_own(sock: socket.socket, path: Path) -> None:
    """Another process may have put its own socket there since; whoever answers is alive."""
    sock.close()
    try:
        _refuse_if_alive(path)
    except OSError:
        return
    with suppress(OSError):
        path.unlink()


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the address is in use"
    return error.strerror or str(error)
