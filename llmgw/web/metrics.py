"""`/metrics`: the text exposition, rendered beside the event loop."""

from __future__ import annotations

import asyncio

from llmgw.observe.metrics import CONTENT_TYPE, refresh, render
from llmgw.web.incoming import Incoming


async def answer_metrics(incoming: Incoming) -> None:
    refresh()
    text = await asyncio.to_thread(render)
    incoming.downstream.respond(200, (("content-type", CONTENT_TYPE),), text)
