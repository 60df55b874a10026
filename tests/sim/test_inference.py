import asyncio

import aiohttp
import pytest

from llmgw.sim.ask import Api
from llmgw.sim.inference import paced
from llmgw.sim.node import SimNode
from llmgw.sim.state import Settings
from tests.fakes.patience import until
from tests.fakes.stepped import SteppedLoop

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def ask(http, node, path="/v1/chat/completions", **body):
    return http.post(node.url + path, json={**CHAT, **body})


@pytest.mark.parametrize("api", Api)
async def test_each_api_answers_whole_and_as_a_stream(node, http, api):
    whole = await ask(http, node, api.value)
    stream = await ask(http, node, api.value, stream=True)

    assert whole.content_type == "application/json"
    assert stream.content_type == "text/event-stream"
    assert b"Hello from a" in await whole.read()
    assert b"Hello " in await stream.read()
    assert [(one.outcome, one.tokens) for one in node.seen] == [("served", 4), ("served", 4)]


@pytest.mark.parametrize("api", Api)
async def test_an_unknown_model_is_refused(node, http, api):
    response = await ask(http, node, api.value, model="nope")

    assert response.status == 404
    assert (await response.json())["error"]["type"] == "NotFoundError"
    assert node.seen[0].outcome == "404"


async def test_a_model_left_out_is_the_engines_own(node, http):
    response = await http.post(f"{node.url}/v1/completions", json={"prompt": "hi"})

    assert (await response.json())["model"] == "m"


async def test_broken_json_is_refused_and_the_connection_goes_on(node, http):
    response = await http.post(f"{node.url}/v1/completions", data=b'{"model":x')

    assert (response.status, (await response.json())["error"]["param"]) == (400, "body.9")
    assert (await ask(http, node)).status == 200


async def test_the_head_does_not_wait_for_the_first_token(http):
    async with SimNode(["m"], ttft=3600) as node:
        stream = await ask(http, node, stream=True)

        assert stream.status == 200
        assert node.seen[0].tokens == 0


def test_tokens_come_at_the_set_pace():
    loop = SteppedLoop()
    came = []

    async def read():
        async for word in paced("abcd", Settings(ttft=3.0, tps=2.0)):
            came.append((word, loop.time()))

    reading = loop.create_task(read())
    for _ in range(50):
        loop.run_until_quiet()
        loop.advance(0.125)

    assert came == [("a", 3.0), ("b", 3.5), ("c", 4.0), ("d", 4.5)]
    assert reading.done()


async def test_a_response_can_be_fetched_and_continued(node, http):
    first = await (await ask(http, node, "/v1/responses", input="hi")).json()

    fetched = await http.get(f"{node.url}/v1/responses/{first['id']}")
    cancelled = await http.post(f"{node.url}/v1/responses/{first['id']}/cancel")
    second = await ask(http, node, "/v1/responses", previous_response_id=first["id"])

    assert await fetched.json() == first == await cancelled.json()
    assert second.status == 200


async def test_a_response_that_was_not_stored_is_unknown(node, http):
    first = await (await ask(http, node, "/v1/responses", store=False)).json()

    fetched = await http.get(f"{node.url}/v1/responses/{first['id']}")
    second = await ask(http, node, "/v1/responses", previous_response_id=first["id"])

    for answer in (fetched, second):
        assert answer.status == 404
        assert (await answer.json())["error"]["param"] == "response_id"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("status,status=503", 503, 503),
        ("status,status=429", 429, 429),
        ("model_not_found", 404, "model_not_found"),
        ("engine_not_found", 404, 404),
        ("unload", 404, 404),
    ],
)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_fault_that_is_an_answer(node, http, fault, status, code, stream):
    await node.inject(fault)

    response = await ask(http, node, stream=stream)

    assert response.status == status
    assert (await response.json())["error"]["code"] == code


async def test_a_fault_with_times_is_met_so_often(node, http):
    await node.inject("model_not_found,times=2,model=m")

    statuses = [(await ask(http, node)).status for _ in range(3)]

    assert statuses == [404, 404, 200]
    assert [one.outcome for one in node.seen] == ["model_not_found", "model_not_found", "served"]


async def test_a_reset_leaves_no_byte(node, http):
    await node.inject("reset,times=1")

    with pytest.raises(aiohttp.ClientOSError):
        await ask(http, node)
    assert node.seen[0].outcome == "reset"


async def test_a_hang_lasts_until_the_client_leaves(node, http):
    await node.inject("hang")

    with pytest.raises(asyncio.TimeoutError):
        await http.post(
            f"{node.url}/v1/completions", json={}, timeout=aiohttp.ClientTimeout(total=0.1)
        )
    await until(lambda: node.state.running == 0)
    assert node.seen[0].outcome == "hang"


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize(
    ("fault", "tokens"), [("cut_before", 0), ("cut_after", 1), ("cut,after=99", 3)]
)
async def test_a_cut_ends_a_stream_inside(node, http, api, fault, tokens):
    await node.inject(fault)
    stream = await ask(http, node, api.value, stream=True)

    with pytest.raises(aiohttp.ClientPayloadError):
        await stream.read()

    assert (node.seen[0].outcome, node.seen[0].tokens) == ("cut", tokens)


async def test_a_cut_ends_a_whole_answer_inside(node, http):
    await node.inject("cut")
    response = await ask(http, node)

    with pytest.raises(aiohttp.ClientPayloadError):
        await response.read()

    assert response.status == 200


@pytest.mark.parametrize("after", [0, 2])
async def test_an_error_in_a_stream_ends_it_cleanly(node, http, events, after):
    await node.inject(f"in_band,after={after}")

    stream = await ask(http, node, stream=True)
    got = [data for _, data in events(await stream.read())]

    assert stream.status == 200
    assert got[-2]["error"]["code"] == 500
    assert got[-1] == "[DONE]"
    assert len(got) == 1 + after + 2  # the role, the tokens, the error and its end


async def test_an_engine_that_died_answers_whole_requests_with_its_status(node, http):
    await node.inject("in_band")

    response = await ask(http, node)

    assert response.status == 500


async def test_a_client_that_leaves_ends_its_stream(http):
    async with SimNode(["m"], tps=100, tokens=1000) as node:
        stream = await ask(http, node, stream=True)
        await stream.content.readany()

        stream.close()

        await until(lambda: node.state.running == 0)
        assert node.seen[0].outcome == "cancelled"
        assert node.seen[0].tokens < 1000
