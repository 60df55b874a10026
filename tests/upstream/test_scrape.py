"""Metrics of an engine and of its GPUs, from two ports, neither of them trusted."""

import pytest

from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.upstream.client import WatchClient
from llmgw.upstream.scrape import MAX_BODY, scrape_gpus, scrape_load
from tests.builders import node
from tests.fakes.rawserver import RawServer, answers, json_answer

ENGINE = b"vllm:num_requests_running 2\nvllm:num_requests_waiting 1\n"
GPUS = b'gpu_memory_used_bytes{gpu="0"} 7\n'
SECRET = (("authorization", "Bearer s"),)


@pytest.fixture
async def client():
    made = WatchClient()
    yield made
    await made.close()


async def test_the_engine_is_asked_with_the_node_s_credential(client):
    async with RawServer(answers(json_answer(ENGINE))) as server:
        load = await scrape_load(client, node("a", server.port, credential=SECRET))

        assert load == EngineLoad(2, 1, 0.0)
        assert server.requests[0].line == "GET /metrics HTTP/1.1"
        assert server.requests[0].values("authorization") == ["Bearer s"]


async def test_the_exporter_beside_it_gets_no_credential(client):
    async with RawServer(answers(json_answer(GPUS))) as server:
        one = node("a", 1, credential=SECRET, metrics_port=server.port)

        assert await scrape_gpus(client, one) == (Gpu("0", 7),)
        assert server.requests[0].values("authorization") == []


async def test_without_a_metrics_port_nobody_is_asked_for_gpus(client):
    assert await scrape_gpus(client, node("a", 1)) == ()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(json_answer(ENGINE + GPUS, status=404), id="404"),
        pytest.param(json_answer(b"<html></html>"), id="HTML"),
        pytest.param(json_answer(b"\xff\xfe"), id="not text"),
        pytest.param(json_answer(ENGINE + GPUS + b"#" * MAX_BODY), id="too long"),
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
    ],
)
async def test_what_cannot_be_read_is_unknown(client, sent):
    async with RawServer(answers(sent)) as server:
        one = node("a", server.port, metrics_port=server.port)

        assert await scrape_load(client, one) is None
        assert await scrape_gpus(client, one) == ()


async def test_nothing_is_raised_where_nobody_listens(client):
    assert await scrape_load(client, node("a", 1)) is None
