"""What the log is told of upstreams' lists: each change once, each warning once."""

from __future__ import annotations

import logging

from llmgw.core.config import Account, Config, ModelsConfig, Upstream
from llmgw.core.discovery import State
from llmgw.core.fleet import Place, place_of
from llmgw.core.transitions import Notice, discovery_notices, is_list_change, never_listed_notice
from llmgw.runtime.configured import ConfiguredModels
from llmgw.runtime.registry import DiscoveryStep

log = logging.getLogger("llmgw")


class ListingLog:
    """Remembers which warnings were given; forgets upstreams that a reload removed."""

    def __init__(self) -> None:
        self._configured = ConfiguredModels()
        self._unlisted: set[Place] = set()

    def changed(self, step: DiscoveryStep, models: ModelsConfig) -> None:
        """Tell of one listing that has landed."""
        before, after = step.before, step.after
        if after.state is State.KNOWN is before.state and after.names is before.names:
            return  # as of most listings: there is nothing to tell
        upstream = step.upstream
        for notice in discovery_notices(before, after):
            _write(upstream, notice)
        if isinstance(upstream, Account):
            self._warn_if_never_listed(upstream, step)
        elif is_list_change(before, after):
            self._configured.list_changed(upstream, after.names or (), models)

    def keep_only(self, config: Config) -> None:
        self._configured.keep_only(config.nodes)
        self._unlisted &= {place_of(account) for account in config.accounts}

    def _warn_if_never_listed(self, account: Account, step: DiscoveryStep) -> None:
        notice = never_listed_notice(step.after)
        if notice is None or account.models or place_of(account) in self._unlisted:
            return
        self._unlisted.add(place_of(account))
        _write(account, notice)


def _write(upstream: Upstream, notice: Notice) -> None:
    level = logging.WARNING if notice.is_warning else logging.INFO
    log.log(level, notice.message, extra={"node": upstream.name, **notice.fields})
