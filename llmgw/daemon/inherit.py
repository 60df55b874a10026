"""Sockets that the process was started with: from the service manager, or from its predecessor.

The manager passes them by `LISTEN_FDS` (sd_listen_fds(3)); a predecessor that is being upgraded
passes them, and the pipe it waits on, in a variable of our own. Both are taken out of the
environment, so that no later child takes them for its own.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from llmgw.core.config import Listen
from llmgw.daemon.sockets import Listener, adopted

FIRST_FD = 3
HTTP, METRICS = "http", "metrics"
HANDOVER = "LLMGW_HANDOVER"

Passed = tuple[dict[str, Any], list[int], bool]  # an address, its descriptors, whether given


class InheritanceUnusable(Exception):
    """What was passed is no listening socket."""


@dataclass(frozen=True, slots=True)
class Inheritance:
    """Listeners by purpose; `ready_fd` is where a predecessor waits to hear of readiness."""

    http: tuple[Listener, ...] = ()
    metrics: tuple[Listener, ...] = ()
    ready_fd: int | None = None

    @property
    def is_upgrade(self) -> bool:
        return self.ready_fd is not None


def take_inheritance(environment: MutableMapping[str, str], pid: int) -> Inheritance:
    handover = environment.pop(HANDOVER, None)
    owner = environment.pop("LISTEN_PID", None)
    count = environment.pop("LISTEN_FDS", "")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    if handover is not None:
        return _from_predecessor(handover)
    if not count.isdecimal() or (owner is not None and owner != str(pid)):
        return Inheritance()
    found = [
        (names[at] if at < len(names) else HTTP, _listener(FIRST_FD + at, given=True))
        for at in range(int(count))
    ]
    return Inheritance(
        http=tuple(one for name, one in found if name != METRICS),
        metrics=tuple(one for name, one in found if name == METRICS),
    )


def describe(http: Sequence[Listener], metrics: Sequence[Listener], ready_fd: int) -> str:
    """The value of `HANDOVER` for a successor that inherits these descriptors."""
    return json.dumps({HTTP: _listed(http), METRICS: _listed(metrics), "ready": ready_fd})


def descriptors(listeners: Sequence[Listener]) -> list[int]:
    return [sock.fileno() for one in listeners for sock in one.sockets]


def _listed(listeners: Sequence[Listener]) -> list[Passed]:
    return [
        (asdict(one.listen), [sock.fileno() for sock in one.sockets], one.given)
        for one in listeners
    ]


def _from_predecessor(handover: str) -> Inheritance:
    passed = json.loads(handover)
    ready_fd = int(passed["ready"])
    os.set_inheritable(ready_fd, False)
    return Inheritance(
        tuple(_passed(one) for one in passed[HTTP]),
        tuple(_passed(one) for one in passed[METRICS]),
        ready_fd,
    )


def _passed(one: Passed) -> Listener:
    """A name that was resolved, or a unix socket that was renamed, is not seen in a socket."""
    listen, numbers, given = one
    sockets = [sock for fd in numbers for sock in _listener(fd, given=given).sockets]
    return Listener(Listen(**listen), tuple(sockets), given)


def _listener(descriptor: int, *, given: bool) -> Listener:
    try:
        os.set_inheritable(descriptor, False)
        sock = socket.socket(fileno=descriptor)
    except OSError as error:
        raise InheritanceUnusable(f"LISTEN_FDS: descriptor {descriptor} is no socket") from error
    with suppress(OSError):
        if sock.type == socket.SOCK_STREAM and sock.getsockopt(
            socket.SOL_SOCKET, socket.SO_ACCEPTCONN
        ):
            return adopted(sock, given=given)
    sock.close()
    raise InheritanceUnusable(f"LISTEN_FDS: descriptor {descriptor} does not listen")
