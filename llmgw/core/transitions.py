"""Which log line a change of an upstream's state gives: the texts are public, one per change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from llmgw.core.discovery import ModelDiscovery, State
from llmgw.core.health import NodeHealth, Status

MAX_NAMES = 20
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Notice:
    """One log line: a constant message, and fields beside it."""

    message: str
    fields: dict[str, object] = field(default_factory=dict)
    is_warning: bool = False


def health_notice(before: NodeHealth, after: NodeHealth) -> Notice | None:
    """A node's checks changed how it is seen; requests alone never do."""
    if before.checked is after.checked:
        return None
    fields: dict[str, object] = {"fails": after.fails}
    match after.checked:
        case Status.HEALTHY:
            return Notice("node healthy", {"was": str(before.checked)})
        case Status.DEGRADED:
            return Notice("node degraded", fields, is_warning=True)
        case Status.DEAD:
            return Notice("node dead", fields, is_warning=True)
        case _:
            assert_never(after.checked)


def discovery_notices(before: ModelDiscovery, after: ModelDiscovery) -> tuple[Notice, ...]:
    """At most one line for the state, and one for a known list that another replaced."""
    notices = (_state_notice(before, after), _list_notice(before, after))
    return tuple(notice for notice in notices if notice is not None)


def never_listed_notice(after: ModelDiscovery) -> Notice | None:
    """For an account whose list was never read: many providers have none."""
    if after.state is not State.UNTRIED or after.fails == 0:
        return None
    hint = "name its models under `models` of the account"
    return Notice("account never listed", {"error": after.last_error, "hint": hint}, True)


def is_list_change(before: ModelDiscovery, after: ModelDiscovery) -> bool:
    """Other names than before; the first list, and names dropped, are changes too."""
    if before.names == after.names:
        return False
    return before.names is None or after.names is None or set(before.names) != set(after.names)


def _state_notice(before: ModelDiscovery, after: ModelDiscovery) -> Notice | None:
    if before.state is after.state:
        return None
    error: dict[str, object] = {"error": after.last_error, "fails": after.fails}
    match after.state:
        case State.KNOWN if before.state in (State.DEGRADED, State.EXPIRED):
            return Notice("model discovery recovered", _names(after))
        case State.KNOWN:
            return Notice("models discovered", _names(after))
        case State.KNOWN_EMPTY:
            return Notice("node reports no models", is_warning=True)
        case State.DEGRADED:
            return Notice("model discovery failed", error, is_warning=True)
        case State.EXPIRED:
            return Notice("model discovery expired", error, is_warning=True)
        case State.UNTRIED:  # no event leads back here
            return None
        case _:
            assert_never(after.state)


def _list_notice(before: ModelDiscovery, after: ModelDiscovery) -> Notice | None:
    if not before.names or not after.names or not is_list_change(before, after):
        return None
    old, new = set(before.names), set(after.names)
    added = [name for name in after.names if name not in old]
    removed = [name for name in before.names if name not in new]
    fields = {"models": len(after.names), "added": _some(added), "removed": _some(removed)}
    return Notice("node model list changed", fields)


def _names(after: ModelDiscovery) -> dict[str, object]:
    names = after.names or ()
    return {"models": len(names), "names": _some(names)}


def _some(names: tuple[str, ...] | list[str]) -> list[str]:
    """A log line is no place for 100,000 names."""
    return [name[:MAX_NAME_CHARS] for name in names[:MAX_NAMES]]
