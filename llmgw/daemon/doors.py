"""Which listeners stay, which are opened and which are dropped when `listen` changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmgw.core.config import Listen
from llmgw.daemon.sockets import Listener, is_same_address, open_listener


@dataclass(frozen=True, slots=True)
class Change:
    """The listeners of one key after a configuration: kept and opened serve, dropped end."""

    kept: tuple[Listener, ...]
    opened: tuple[Listener, ...]
    dropped: tuple[Listener, ...]

    @property
    def serving(self) -> tuple[Listener, ...]:
        return (*self.kept, *self.opened)

    def undo(self) -> None:
        """Close what was opened; what is kept and dropped was not touched."""
        for listener in self.opened:
            listener.remove()


def open_change(key: str, current: Sequence[Listener], wanted: Sequence[Listen]) -> Change:
    """Bind the addresses that are new, before any other is closed.

    What the service manager gave stays whether it is listed or not. Raises `ListenFailed`, and
    then nothing is left open.
    """
    kept = tuple(one for one in current if one.given or _is_listed(one, wanted))
    dropped = tuple(one for one in current if one not in kept)
    own_ports = {
        sock.getsockname()[1] for one in current if not one.listen.path for sock in one.sockets
    }
    change = Change(kept, (), dropped)
    for listen in wanted:
        if any(is_same_address(listen, one.listen) for one in change.serving):
            continue
        try:
            fresh = open_listener(key, listen, shared_ports=own_ports)
        except Exception:
            change.undo()
            raise
        change = Change(kept, (*change.opened, fresh), dropped)
    return change


def _is_listed(listener: Listener, wanted: Sequence[Listen]) -> bool:
    return any(is_same_address(listener.listen, one) for one in wanted)
