"""The first file of a new gateway: its nodes, and the few keys that most people set next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llmgw.config_file.base_urls import write_base_url
from llmgw.config_file.writing import setting
from llmgw.core.config import Node

_HEAD: Final = """\
# llmgw: a gateway for the nodes below. Lines that begin with "# " explain; take the "#" away from
# a line that begins with "#" and a key to set that key. docs/configuration.md lists every key.

[gateway]
# Where clients connect, and where /metrics is served.
{listen}
#metrics_listen = ":9090"

[models]
# Takes the place of a missing model; the id exactly as the nodes serve it.
#default = "MODEL"

# Without this section and without a keys.toml beside this file, everybody who reaches the gateway
# may use it: llmgw key new makes a key, and with it the file.
#[auth]
"""


def starter(nodes: Sequence[Node], listen: str | None = None) -> str:
    line = setting("listen", listen) if listen else '#listen = ":8000"'
    head = _HEAD.format(listen=line)
    return "\n".join([head, *(_node(one, index) for index, one in enumerate(nodes, 1))])


def _node(node: Node, index: int) -> str:
    lines = [
        "[[nodes]]",
        setting("url", write_base_url(node.url)),
        f"#{setting('name', f'gpu-{index}')}",
    ]
    if index == 1:
        lines += [
            "# The file or environment variable that holds the node's key, if it wants one.",
            '#api_key_file = "node.key"',
            "# For servers without /health (Ollama).",
            '#health = "off"',
        ]
    return "\n".join([*lines, ""])
