"""What is allowed but hardly meant: a file with these loads, and its reader is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from llmgw.config_file.addresses import format_listen, is_loopback
from llmgw.config_file.faults import Note, Report, nearest
from llmgw.config_file.links import has_password
from llmgw.core.config import Account, Config, Listen, Node

NEEDS_FILE: Final = "keys need a file, which llmgw init writes"


def note_oddities(config: Config, report: Report) -> None:
    """Places of upstreams are those of the file, which keeps their order."""
    for found in (_idle_upstreams, _rings, _unserved_models, _password):
        report.notes.extend(found(config))


def note_open_access(listens: Sequence[Listen], report: Report, *, has_file: bool = True) -> None:
    """Keys lie beside a file: a gateway without one has nowhere to look for them."""
    way = "llmgw key new makes a key and closes it" if has_file else NEEDS_FILE
    public = [format_listen(one) for one in listens if not is_loopback(one)]
    if public:
        report.note(
            "auth",
            f"open access on a public address: whoever reaches {', '.join(public)} may use every "
            "node",
            way,
        )
    else:
        report.note("auth", "open access: there is no [auth] and no keys file", way)


def _idle_upstreams(config: Config) -> Iterator[Note]:
    if not config.upstreams:
        yield Note("nodes", "there are no nodes and no accounts: every request is refused")
    placed = {name for pool in config.pools for name in pool.upstreams}
    for place, one in _places(config):
        if one.name not in placed:
            yield Note(place, f'"{one.name}" is in no pool and is never asked')


def _rings(config: Config) -> Iterator[Note]:
    rings = {node.ring for node in config.nodes if node.ring}
    wanted = {model.ring for model in config.models.available if model.ring}
    for index, model in enumerate(config.models.available):
        if model.ring and model.ring not in rings:
            yield Note(
                f"models.available[{index}].ring",
                f'no node is in the ring "{model.ring}": nobody could serve "{model.name}"',
                nearest(model.ring, rings),
            )
    for index, node in enumerate(config.nodes):
        if node.ring and node.ring not in wanted:
            yield Note(
                f"nodes[{index}].ring",
                f'no model is in the ring "{node.ring}": this node is never asked',
                nearest(node.ring, wanted),
            )


def _unserved_models(config: Config) -> Iterator[Note]:
    """A model without a ring is served by nodes without one, and by accounts."""
    if not config.upstreams or any(node.ring is None for node in config.nodes) or config.accounts:
        return
    for index, model in enumerate(config.models.available):
        if model.ring is None:
            yield Note(f"models.available[{index}]", _nobody(model.name))
    default = config.models.default
    if default and all(model.name != default for model in config.models.available):
        yield Note("models.default", _nobody(default))


def _nobody(model: str) -> str:
    return f'nobody could serve "{model}": it has no ring, and every node is in one'


def _password(config: Config) -> Iterator[Note]:
    if config.database.url and has_password(config.database.url):
        yield Note(
            "database.url",
            "holds a password, and secrets do not belong in this file",
            "PGPASSWORD or PGPASSFILE carry it",
        )


def _places(config: Config) -> Iterator[tuple[str, Node | Account]]:
    for index, node in enumerate(config.nodes):
        yield f"nodes[{index}]", node
    for index, account in enumerate(config.accounts):
        yield f"accounts[{index}]", account
