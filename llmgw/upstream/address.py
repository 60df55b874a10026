"""From a base URL to a connected transport: DNS, TCP to the first address that answers, TLS.

Names are resolved at every new connection, so that a moved node is found again; all their
addresses are tried, staggered (RFC 8305), so that `localhost` reaches a server on IPv4 alone.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TypeVar

from aiohappyeyeballs import start_connection
from aiohappyeyeballs.types import AddrInfoType

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError

STAGGER = 0.25  # seconds before the next address is tried as well
GIVE_UP = 30  # seconds without a sign of life after which TCP ends a connection
KEEPALIVE_IDLE, KEEPALIVE_EVERY, KEEPALIVE_COUNT = 15, 5, 3  # together GIVE_UP

# This host's want of descriptors or memory says nothing of the upstream.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_DETAILS: dict[type[Exception], str] = {ConnectionRefusedError: "refused", TimeoutError: "timeout"}

P = TypeVar("P", bound=asyncio.BaseProtocol)

Resolve = Callable[[BaseUrl], Awaitable[list[AddrInfoType]]]

_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_EVERY),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_COUNT),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GIVE_UP * 1000),
)


@lru_cache(maxsize=1)
def default_tls() -> ssl.SSLContext:
    """The system's trust, HTTP/1.1 alone. Made once: reading the trust store takes long."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def resolve(url: BaseUrl) -> list[AddrInfoType]:
    """All addresses of a host, asked for anew; raises `UpstreamError` (CONNECT) alone."""
    address = literal(url)
    if address is not None:
        return [address]  # never waits for a resolver thread that other names keep busy
    loop = asyncio.get_running_loop()
    try:
        return list(await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):  # a name that IDNA can't take is a UnicodeError
        raise _failed("name not resolved") from None


async def connect(
    url: BaseUrl,
    factory: Callable[[], P],
    *,
    within: float,
    tls: ssl.SSLContext | None = None,
    resolve: Resolve = resolve,
) -> P:
    """Connect a new protocol to `url`; raises `UpstreamError` (CONNECT, EXHAUSTED) alone.

    `within` seconds cover name resolution, TCP and TLS together.
    """
    context = None if url.scheme == "http" else tls or default_tls()
    try:
        async with asyncio.timeout(within):
            sock = await _connect(await resolve(url))
            return await _start(sock, factory, context, url.host)
    except TimeoutError:
        raise _failed("timeout") from None


def connect_fault(error: Exception) -> UpstreamError:
    """What it means that a connection could not be made."""
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        return UpstreamError(FaultKind.EXHAUSTED, "no socket")
    return _failed(_DETAILS.get(type(error), "unreachable"))


def prepare(sock: socket.socket) -> None:
    """So that a peer without a sign of life is noticed."""
    for level, option, value in _OPTIONS:
        sock.setsockopt(level, option, value)


def literal(url: BaseUrl) -> AddrInfoType | None:
    """Of a host that is an address itself."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, url.host)
        except (OSError, ValueError):
            continue
        return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (url.host, url.port))
    return None


async def _connect(addresses: list[AddrInfoType]) -> socket.socket:
    try:
        if len(addresses) == 1:  # there is nothing to race
            sock = await _connect_to(addresses[0])
        else:
            sock = await start_connection(addresses, happy_eyeballs_delay=STAGGER)
    except (OSError, RuntimeError) as error:  # uvloop has RuntimeErrors of its own here
        raise connect_fault(error) from None
    prepare(sock)
    return sock


async def _connect_to(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _start(
    sock: socket.socket, factory: Callable[[], P], context: ssl.SSLContext | None, host: str
) -> P:
    loop = asyncio.get_running_loop()
    name = host if context else None
    try:
        _, protocol = await loop.create_connection(
            factory, sock=sock, ssl=context, server_hostname=name
        )
    except OSError:  # SSLError, CertificateError and a reset inside the handshake are OSErrors
        sock.close()
        raise _failed("tls" if context else "unreachable") from None
    except BaseException:
        sock.close()
        raise
    return protocol


def _failed(detail: str) -> UpstreamError:
    return UpstreamError(FaultKind.CONNECT, detail)
