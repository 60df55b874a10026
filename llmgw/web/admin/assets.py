"""The stylesheet and the scripts, read once."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from aiohttp import web

from llmgw.core.errors import NotFound
from llmgw.web.admin.replies import asset, not_modified
from llmgw.web.incoming import Incoming

TYPES: Final = {
    "admin.css": "text/css",
    "admin.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def answer_asset(incoming: Incoming, name: str) -> web.Response:
    if name not in TYPES:
        raise NotFound("there is no such file")
    body, tag = _read(name)
    if incoming.header("If-None-Match") == tag:
        return not_modified(tag)
    return asset(body, TYPES[name], tag)


@cache
def _read(name: str) -> tuple[bytes, str]:
    body = files("llmgw.web").joinpath("static", name).read_bytes()
    return body, f'"{sha256(body).hexdigest()[:16]}"'
