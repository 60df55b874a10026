"""What a process begins with: what can fail with one clear line fails here.

The order: configuration, logs, folders, sockets. Only then come the event loop and what lives in
it: nothing is started before everything that can be refused has been looked at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass

from llmgw.config_file import ConfigError, Loaded
from llmgw.daemon.front import Listeners, Opening
from llmgw.daemon.inherit import Inheritance, InheritanceUnusable, take_inheritance
from llmgw.daemon.notify import Notifier, watchdog_interval
from llmgw.daemon.places import Places, PlaceUnusable, prepare
from llmgw.daemon.sockets import ListenFailed
from llmgw.daemon.source import Source
from llmgw.observe import logs


class StartRefused(Exception):
    """The gateway can't start; each line names what is wrong and where."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Launch:
    """All that a process begins with."""

    source: Source
    loaded: Loaded
    places: Places
    opening: Opening
    inheritance: Inheritance
    notifier: Notifier
    watchdog: float | None


def prepare_launch(
    source: Source, places: Places, environment: MutableMapping[str, str]
) -> Launch:
    """Read, check and bind. Raises `StartRefused`."""
    try:
        loaded = source.load()
        logs.setup(loaded.config.log, sys.stderr)
        prepare(places, keeps_state=loaded.config.database.url is None)
        inheritance = take_inheritance(environment, os.getpid())
        opening = Listeners.inherited(inheritance).open(loaded.config.gateway)
    except ConfigError as error:
        raise StartRefused(error.lines(source)) from error
    except (PlaceUnusable, InheritanceUnusable, ListenFailed) as error:
        raise StartRefused((str(error),)) from error
    return Launch(
        source,
        loaded,
        places,
        opening,
        inheritance,
        Notifier.from_environment(environment),
        watchdog_interval(environment, None if inheritance.is_upgrade else os.getpid()),
    )
