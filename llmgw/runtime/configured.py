"""Warnings about models that the configuration names and a node does not list.

They never reject anything: the node may load the model later, or another one may have it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from llmgw.core.config import ModelsConfig, Node
from llmgw.core.types import UpstreamName

log = logging.getLogger("llmgw")


class ConfiguredModels:
    """Remembers what was said: once for each node and model, however often lists change."""

    def __init__(self) -> None:
        self._said: set[tuple[UpstreamName, str]] = set()

    def list_changed(self, node: Node, names: Iterable[str], models: ModelsConfig) -> None:
        """Look at a list that was just believed, or dropped."""
        served = frozenset(names)
        for model in expected_of(node, models):
            if model not in served and (node.name, model) not in self._said:
                self._said.add((node.name, model))
                log.warning(
                    "configured model not served by node",
                    extra={"node": node.name, "model": model},
                )

    def keep_only(self, nodes: Iterable[Node]) -> None:
        """Forget nodes that a reload removed: one that comes back is told of again."""
        names = {node.name for node in nodes}
        self._said = {said for said in self._said if said[0] in names}


def expected_of(node: Node, models: ModelsConfig) -> Iterator[str]:
    """The configured models of the node's ring; the default counts where it has no entry."""
    listed = dict.fromkeys(model.name for model in models.available)
    for name in listed:
        if models.ring_of(name) == node.ring:
            yield name
    if models.default is not None and models.default not in listed and node.ring is None:
        yield models.default
