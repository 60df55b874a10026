"""How the running gateway stands: what the process tells of it and the web floor shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """Where the running configuration came from; `last_error` is that of a refused reload."""

    loaded_at: float  # unix time
    digest: str
    last_error: str = ""
