"""Names of hosts for those who ask again and again: looked up once for all, and kept a while.

A name server that hangs keeps threads busy, for seconds and beyond every timeout. These are
threads of their own, so that no request waits for one of them.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from aiohappyeyeballs.types import AddrInfoType

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream import address

KEPT = 10.0  # seconds
MOST_KEPT = 4096
THREADS = 8

Host = tuple[str, int]
Found = list[AddrInfoType]


class Names:
    """Answers with the addresses of a host. Make it inside a running loop; `close` it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "names")
        self._found: dict[Host, tuple[float, Found]] = {}
        self._sought: dict[Host, asyncio.Future[Found]] = {}

    async def resolve(self, url: BaseUrl) -> Found:
        """Raises `UpstreamError` (CONNECT, EXHAUSTED) alone. Cancelling it leaves the search to
        the others that wait for it."""
        if is_numeric(url.host):
            return await address.resolve(url)
        host = (url.host, url.port)
        kept = self._found.get(host)
        if kept is not None and self._loop.time() < kept[0]:
            return kept[1]
        try:
            return await asyncio.shield(self._search(host))
        except (OSError, UnicodeError):  # a name that IDNA can't take is a UnicodeError
            raise _fault() from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _search(self, host: Host) -> asyncio.Future[Found]:
        sought = self._sought.get(host)
        if sought is None:
            sought = self._loop.run_in_executor(self._threads, _look_up, host)
            self._sought[host] = sought
            sought.add_done_callback(partial(self._keep, host))
        return sought

    def _keep(self, host: Host, sought: asyncio.Future[Found]) -> None:
        """A failure is not kept: the next one to ask looks again."""
        del self._sought[host]
        if not sought.cancelled() and sought.exception() is None:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[host] = (self._loop.time() + KEPT, sought.result())


def _fault() -> UpstreamError:
    """A resolver that gets no socket says no more than that the name was not found."""
    try:
        socket.socket().close()
    except OSError:
        return UpstreamError(FaultKind.EXHAUSTED, "no socket")
    return UpstreamError(FaultKind.CONNECT, "name not resolved")


@lru_cache(maxsize=MOST_KEPT)
def is_numeric(host: str) -> bool:
    """An address, which nobody has to look up."""
    try:
        return bool(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST))
    except (OSError, UnicodeError):
        return False


def _look_up(host: Host) -> Found:
    return list(socket.getaddrinfo(*host, type=socket.SOCK_STREAM))
