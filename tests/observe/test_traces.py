"""Spans as OpenTelemetry's own SDK sees them."""

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from llmgw.core.eligibility import Candidate
from llmgw.core.types import CLUSTER, AssignmentId
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.observe.traces import OtelTracer
from tests.builders import call, node, streaming

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = ("traceparent", f"00-{TRACE_ID}-b7ad6b7169203331-01")
NODE_A = node("a", 8001)


def candidate() -> Candidate:
    return Candidate(AssignmentId("cluster/a"), NODE_A, None)


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    made = OtelTracer(SimpleSpanProcessor(exporter), sample=1.0, instance="gw1")
    yield made
    made.close()


def begin(tracer, made=None, model="m"):
    return tracer.begin(made or call(), pool=CLUSTER, model=model)


def test_a_request_with_two_attempts_is_three_spans(tracer, exporter):
    trace = begin(tracer, streaming())
    first = trace.attempt(candidate(), ordinal=1)
    first.end(status=None, error="connect")
    trace.handoff("connect")
    second = trace.attempt(candidate(), ordinal=2)
    second.first_visible()
    second.end(status=200, error=None)
    trace.end(status=200, attempts=2, usage=Usage(3, 5), error=None)

    lost, served, server = exporter.get_finished_spans()
    assert [one.kind for one in (lost, served, server)] == [
        SpanKind.CLIENT,
        SpanKind.CLIENT,
        SpanKind.SERVER,
    ]
    assert {one.name for one in (lost, served, server)} == {"chat m"}
    assert {one.context.trace_id for one in (lost, served, server)} == {server.context.trace_id}
    assert lost.parent.span_id == served.parent.span_id == server.context.span_id
    assert (lost.status.status_code, served.status.status_code) == (
        StatusCode.ERROR,
        StatusCode.UNSET,
    )
    assert lost.attributes["error.type"] == "connect"
    assert [one.name for one in served.events] == ["first_visible"]
    assert [(one.name, one.attributes["llmgw.reason"]) for one in server.events] == [
        ("handoff", "connect")
    ]


def test_the_attributes_have_the_names_of_the_conventions(tracer, exporter):
    trace = begin(tracer)
    trace.attempt(candidate(), ordinal=1).end(status=200, error=None)
    trace.end(status=200, attempts=1, usage=Usage(3, 5), error=None)

    client, server = exporter.get_finished_spans()
    shared = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    assert dict(client.attributes) == {
        **shared,
        "server.address": "127.0.0.1",
        "server.port": 8001,
        "http.response.status_code": 200,
        "llmgw.assignment": "cluster/a",
        "llmgw.attempt": 1,
    }
    assert dict(server.attributes) == {
        **shared,
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 5,
        "llmgw.pool": "cluster",
        "llmgw.request_id": "req_1",
        "llmgw.stream": False,
        "llmgw.attempts": 1,
    }
    assert server.resource.attributes["service.name"] == "llmgw"
    assert server.resource.attributes["service.instance.id"] == "gw1"


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/v1/messages", "chat"),
        ("/v1/completions", "text_completion"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/rerank", "generate_content"),
    ],
)
def test_the_operation_is_the_routes(tracer, exporter, path, operation):
    begin(tracer, call(path=path)).end(status=200, attempts=0, usage=UNKNOWN, error=None)

    [server] = exporter.get_finished_spans()
    assert server.name == f"{operation} m"
    assert "gen_ai.usage.input_tokens" not in server.attributes


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        pytest.param(503, "no_eligible_backend", "no_eligible_backend", id="a refusal of ours"),
        pytest.param(502, None, "502", id="an upstream's failure"),
        pytest.param(0, "cancelled", "cancelled", id="a client that left"),
        pytest.param(404, None, None, id="a client's own fault"),
    ],
)
def test_what_failed_is_marked(tracer, exporter, status, error, kind):
    begin(tracer).end(status=status, attempts=1, usage=UNKNOWN, error=error)

    [server] = exporter.get_finished_spans()
    assert server.attributes.get("error.type") == kind
    assert (server.status.status_code is StatusCode.ERROR) == (kind is not None)
    assert server.attributes.get("http.response.status_code", 0) == status


def test_a_clients_trace_is_continued_and_upstreams_continue_ours(tracer, exporter):
    trace = begin(tracer, call(headers=(PARENT,)))
    attempt = trace.attempt(candidate(), ordinal=1)
    parent = attempt.traceparent
    attempt.end(status=200, error=None)
    trace.end(status=200, attempts=1, usage=UNKNOWN, error=None)

    client, server = exporter.get_finished_spans()
    assert f"{server.context.trace_id:032x}" == TRACE_ID
    assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
    assert parent == f"00-{TRACE_ID}-{client.context.span_id:016x}-01"


@pytest.mark.parametrize(
    ("flags", "spans"), [pytest.param("00", 0, id="not"), pytest.param("01", 1, id="sampled")]
)
@pytest.mark.parametrize("sample", [0.0, 1.0])
def test_the_client_decides_whether_its_trace_is_sampled(exporter, flags, spans, sample):
    tracer = OtelTracer(SimpleSpanProcessor(exporter), sample=sample, instance="gw1")
    header = ("traceparent", f"00-{TRACE_ID}-b7ad6b7169203331-{flags}")

    trace = begin(tracer, call(headers=(header,)))
    assert trace.attempt(candidate(), ordinal=1).traceparent.endswith(flags)
    trace.end(status=200, attempts=1, usage=UNKNOWN, error=None)

    assert len(exporter.get_finished_spans()) == spans
    tracer.close()


@pytest.mark.parametrize("header", ["nonsense", "00-" + "0" * 32 + "-b7ad6b7169203331-01"])
def test_a_broken_parent_begins_a_trace_of_its_own(tracer, exporter, header):
    trace = begin(tracer, call(headers=(("traceparent", header),)))
    trace.end(status=200, attempts=0, usage=UNKNOWN, error=None)

    [server] = exporter.get_finished_spans()
    assert server.parent is None
