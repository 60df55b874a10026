"""A file of the older gateway in today's form; what it says stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llmgw.config_file.assembly import PROVISION
from llmgw.config_file.base_urls import write_base_url
from llmgw.config_file.reading import Raw
from llmgw.core.config import Config, Node

_OLDER_NODE_KEYS: Final = frozenset({"ip", "vllm_port", "url", "name"})


def migrate(root: Raw, config: Config) -> dict[str, object]:
    """`root` is what was parsed to `config`. Nodes get their URL, and the name that they had."""
    fresh = {key: value for key, value in root.items() if key != PROVISION}
    if nodes := _tables(root.get("nodes")):
        fresh["nodes"] = [_node(raw, node) for raw, node in zip(nodes, config.nodes, strict=True)]
    models = root.get("models")
    if isinstance(models, dict):
        available = [_model(one) for one in _tables(models.get("available"))]
        fresh["models"] = _filled(models) | ({"available": available} if available else {})
    return fresh


def _node(raw: Mapping[str, object], node: Node) -> dict[str, object]:
    rest = {key: value for key, value in _filled(raw).items() if key not in _OLDER_NODE_KEYS}
    return {"name": node.name, "url": write_base_url(node.url), **rest}


def _model(raw: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in _filled(raw).items() if key != "pipeline_stages"}


def _filled(raw: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in raw.items() if value != ""}


def _tables(found: object) -> list[dict[str, object]]:
    return found if isinstance(found, list) else []
