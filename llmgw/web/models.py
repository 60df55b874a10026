"""`/v1/models`: what the client's pool offers, as far as its key may see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import orjson

from llmgw.core.catalog import CREATED, Entry
from llmgw.core.errors import NotFound
from llmgw.web.errors import JSON
from llmgw.web.incoming import Incoming
from llmgw.web.inference import authenticate
from llmgw.web.ports import Gateway
from llmgw.web.table import Page

OWNER: Final = "llmgw"
CREATED_AT: Final = datetime.fromtimestamp(CREATED, UTC).isoformat().replace("+00:00", "Z")

Document = dict[str, object]


def model_page(gateway: Gateway) -> Page:
    """The list, and below it one model by its id, which may hold slashes."""

    async def handle(incoming: Incoming) -> None:
        principal = authenticate(gateway, incoming, incoming.headers)
        catalog = gateway.catalog(principal.pool)
        for_anthropic = incoming.header("anthropic-version") is not None
        if incoming.tail:
            entry = catalog.entries.get(incoming.tail)
            if entry is None or not principal.models.allows(entry.model):
                raise NotFound("no such model", code="model_not_found", param="model")
            document = _model(entry, for_anthropic)
        else:
            document = _list(catalog.visible(principal.models.allows), for_anthropic)
        incoming.downstream.respond(200, (JSON,), orjson.dumps(document))

    return Page("/v1/models", {"GET": handle}, takes_tail=True)


def _list(entries: Sequence[Entry], for_anthropic: bool) -> Document:
    document: Document = {
        "object": "list",
        "data": [_model(entry, for_anthropic) for entry in entries],
    }
    if for_anthropic:  # https://docs.anthropic.com/en/api/models-list
        document["has_more"] = False
        document["first_id"] = entries[0].model if entries else None
        document["last_id"] = entries[-1].model if entries else None
    return document


def _model(entry: Entry, for_anthropic: bool) -> Document:
    document: Document = {
        "id": entry.model,
        "object": "model",
        "created": CREATED,
        "owned_by": OWNER,
    }
    if entry.max_model_len is not None:
        document["max_model_len"] = entry.max_model_len
    if for_anthropic:
        document |= {"type": "model", "display_name": entry.model, "created_at": CREATED_AT}
    return document
