"""What the service manager is told: the datagrams of sd_notify(3), of our own.

Without `NOTIFY_SOCKET` nothing is sent. A notifier that was silenced (its main process is
another one now) sends nothing more.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

USEC = 1_000_000


class Notifier:
    """Sends state lines to the service manager; a manager that does not listen is no error."""

    def __init__(self, address: str | None) -> None:
        self._address = _abstract(address) if address else None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Notifier:
        return cls(environment.get("NOTIFY_SOCKET"))

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """systemd refuses RELOADING=1 without the time it began, on CLOCK_MONOTONIC."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def status(self, text: str) -> None:
        self._send(f"STATUS={text}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    def watchdog(self) -> None:
        self._send("WATCHDOG=1")

    def handed_over(self, pid: int) -> None:
        """Name the new main process; from here on it speaks, and this one is silent."""
        self._send(f"MAINPID={pid}", "READY=1", "WATCHDOG=1")
        self._address = None

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        message = "\n".join(line.replace("\n", " ") for line in lines)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outlet:
            outlet.setblocking(False)  # a full queue must not stop the event loop
            try:
                outlet.sendto(message.encode(), self._address)
            except OSError:
                return


def watchdog_interval(environment: Mapping[str, str], pid: int | None) -> float | None:
    """Half of `WATCHDOG_USEC` in seconds, or None without a watchdog.

    `WATCHDOG_PID` says whom it is for; an upgraded process passes None, for it still names the
    parent that the manager started.
    """
    usec, owner = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID")
    if not usec.isdecimal() or int(usec) == 0:
        return None
    if pid is not None and owner is not None and owner != str(pid):
        return None
    return int(usec) / USEC / 2


def _abstract(address: str) -> str:
    """An address that begins with "@" lies in the abstract namespace (unix(7))."""
    return "\0" + address[1:] if address.startswith("@") else address
