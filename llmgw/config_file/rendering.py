"""A configuration written out: every key with its effective value, and no secret."""

from __future__ import annotations

from llmgw.core.config import Config

Toml = str | int | float | bool | list["Toml"] | dict[str, "Toml"]
LOADED_FILE = "loaded.json"  # in RUNTIME_DIRECTORY: what the running gateway last loaded


def render(config: Config) -> dict[str, Toml]:
    """The tables of a file that would load to this configuration, but for its secrets.

    As JSON it is what the daemon writes to `RUNTIME_DIRECTORY/loaded.json` after each load, for
    `llmgw check --diff`.
    """
    raise NotImplementedError
