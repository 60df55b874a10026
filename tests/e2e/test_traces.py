"""Spans that a whole gateway sends to a collector, as they arrive there."""

import asyncio
import json

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmgw.sim.node import SimNode
from tests.fakes.process import chat
from tests.fakes.raw_client import RawClient, request
from tests.fakes.rawserver import Peer, RawServer, json_answer

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = ("Traceparent", f"00-{TRACE_ID}-b7ad6b7169203331-01")


class Collector:
    def __init__(self) -> None:
        self.spans = []

    async def play(self, peer: Peer) -> None:
        while True:
            received = await peer.request()
            assert received.line == "POST /v1/traces HTTP/1.1"
            sent = ExportTraceServiceRequest.FromString(received.body)
            for resource in sent.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            await peer.send(json_answer(b""))


async def test_a_failover_is_a_trace_of_three_spans_at_the_collector(serve):
    collector = Collector()
    async with (
        RawServer(collector.play) as server,
        SimNode(["sim"], name="a") as a,
        SimNode(["sim"], name="b") as b,
    ):
        await a.inject("status,status=503,times=1")
        await b.inject("status,status=503,times=1")
        tracing = f'[tracing]\nendpoint = "http://127.0.0.1:{server.port}"\n'
        gateway = await serve([a.url, b.url], extra=f"[routing]\nplan_size = 3\n{tracing}")
        client = await RawClient.connect(("127.0.0.1", gateway.port))
        body = json.dumps(chat(stream=True)).encode()

        await client.ask(request("POST", "/v1/chat/completions", body=body, headers=[PARENT]))
        reply = await client.ask(
            request("POST", "/v1/chat/completions", body=body, headers=[PARENT])
        )
        client.close()
        gateway.process.terminate()
        await gateway.ended()

    assert reply.status == 200
    assert {one.trace_id.hex() for one in collector.spans} == {TRACE_ID}
    assert {one.name for one in collector.spans} == {"chat sim"}
    servers = [one for one in collector.spans if one.parent_span_id.hex() == "b7ad6b7169203331"]
    assert len(servers) == 2
    assert len(collector.spans) == 2 + len(a.seen) + len(b.seen)
    events = sorted(event.name for one in collector.spans for event in one.events)
    assert events == ["first_visible", "handoff"]
    assert "hello" not in str(collector.spans)


async def test_a_collector_that_is_not_there_costs_no_request(serve):
    async with SimNode(["sim"]) as node:
        gateway = await serve([node.url], extra='[tracing]\nendpoint = "http://127.0.0.1:9"\n')
        client = await RawClient.connect(("127.0.0.1", gateway.port))
        body = json.dumps(chat()).encode()

        replies = [
            await client.ask(request("POST", "/v1/chat/completions", body=body)) for _ in range(3)
        ]
        client.close()
        gateway.process.terminate()
        async with asyncio.timeout(12):
            status = await gateway.ended()

    assert [one.status for one in replies] == [200] * 3
    assert status == 0
