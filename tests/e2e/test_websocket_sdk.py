"""The OpenAI SDK's websocket clients, through the gateway, against simulated nodes."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from openai import AsyncOpenAI

from llmgw.sim.node import SimNode
from tests.builders import config, node
from tests.fakes.live import TOKEN, Whole, keyring


@asynccontextmanager
async def sdk(*nodes: SimNode):
    async with AsyncExitStack() as stack:
        for one in nodes:
            await stack.enter_async_context(one)
        ports = [int(one.url.rpartition(":")[2]) for one in nodes]
        names = "abc"[: len(nodes)]
        settings = config(*(node(name, port) for name, port in zip(names, ports, strict=True)))
        first, *rest = settings.pools[0].upstreams
        pools = (replace(settings.pools[0], upstreams=(*rest, first)), settings.pools[1])
        running = await stack.enter_async_context(Whole(replace(settings, pools=pools)))
        running.gateway.keyring = keyring(pool="cluster")
        base = f"http://127.0.0.1:{running.port}/v1"
        yield await stack.enter_async_context(AsyncOpenAI(api_key=TOKEN, base_url=base)), running


@pytest.mark.parametrize("websocket", [True, False], ids=["direct", "bridged"])
async def test_responses_by_turns(websocket):
    nodes = [SimNode(["m1"], name=name, websocket=websocket, tokens=5) for name in "ab"]
    async with sdk(*nodes) as (client, running):
        await nodes[0].inject("model_not_found,times=1")
        texts = []

        async with client.responses.connect() as connection:
            for _ in range(2):
                await connection.response.create(model="m1", input="hello")
                async for event in connection:
                    if event.type == "response.output_text.done":
                        texts.append(event.text)
                    if event.type == "response.completed":
                        break

        assert len(texts) == 2
        assert texts[0] == texts[1]
        assert [one.outcome for one in nodes[0].seen][:1] == ["model_not_found"]
        assert [one[0][1] for one in running.attempts] == ["retryable_failed", "succeeded"]


async def test_a_conversation_over_a_bridge_to_a_node_that_keeps_nothing():
    a = SimNode(["m1"], name="a", stores=False, tokens=5)
    async with sdk(a) as (client, running), client.responses.connect() as connection:
        previous = None
        for text in ("one", "two", "three"):
            extra = {} if previous is None else {"previous_response_id": previous}
            await connection.response.create(model="m1", input=text, store=False, **extra)
            async for event in connection:
                assert event.type != "error"
                if event.type == "response.completed":
                    previous = event.response.id
                    break

        assert [one.outcome for one in a.seen] == ["served"] * 3
        assert [len(one) for one in running.attempts] == [1, 1, 1]


async def test_realtime():
    a, b = (SimNode(["m1"], name=name, websocket=True, tokens=5) for name in "ab")
    async with sdk(a, b) as (client, running):
        await a.inject("status,status=503,times=1")
        async with client.realtime.connect(model="m1") as connection:
            await connection.session.update(session={"type": "realtime"})
            await connection.response.create()
            kinds = []
            async for event in connection:
                kinds.append(event.type)
                if event.type == "response.done":
                    break

        assert kinds[:2] == ["session.created", "session.updated"]
        assert kinds.count("response.output_text.delta") == 5
        assert [one.path for one in b.seen] == ["/v1/realtime"]
        assert running
