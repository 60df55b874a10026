"""The pieces of the hot path, each alone: `make bench-micro`."""

import orjson
import pytest

from llmgw.core.affinity import NOWHERE
from llmgw.core.catalog import build_catalog
from llmgw.core.classify import Fault, classify
from llmgw.core.config import BaseUrl, CircuitsConfig, ModelsConfig, Node
from llmgw.core.discovery import Listed, ModelDiscovery, advance
from llmgw.core.eligibility import Ask, select_eligible
from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject
from llmgw.core.fleet import UpstreamState
from llmgw.core.headers import downstream_headers, upstream_headers
from llmgw.core.nearest import nearest_model
from llmgw.core.plan import build_plan
from llmgw.core.relay import Relay
from llmgw.core.routes import BY_PATH
from llmgw.core.sse import EventCutter
from llmgw.core.tail import Tail
from llmgw.core.types import (
    CLUSTER,
    Dialect,
    Provenance,
    RouteClass,
    Strategy,
    UpstreamName,
    assignment_id,
)
from llmgw.core.wire import parse_call
from llmgw.observe import metrics
from llmgw.upstream.framing import Chunked
from llmgw.upstream.head import HeadReader
from llmgw.web.health import health_document
from tests.fakes.gateway import FakeGateway, FakeRegistry

CHAT = BY_PATH["/v1/chat/completions"]
HEADERS = (
    ("host", "gateway"),
    ("content-type", "application/json"),
    ("authorization", "Bearer sk-1"),
    ("user-agent", "client/1.0"),
    ("accept", "*/*"),
    ("accept-encoding", "gzip"),
    ("x-stainless-lang", "python"),
    ("content-length", "600"),
)
HEAD = (
    b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-length: 400\r\ncontent-type: application/json\r\n\r\n"
)
EVENT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m1","choices":'
    b'[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)


def body(size):
    return b'{"model": "m1", "messages": [{"role": "user", "content": "%b"}]}' % (b"x" * size)


def node(number):
    return Node(UpstreamName(f"n{number}"), BaseUrl("http", "10.0.0.1", 8000 + number))


def states(count, models=("m1",)):
    known = advance(ModelDiscovery(), Listed(models, now=1.0), fail_threshold=3, is_account=False)
    return tuple(
        (assignment_id(CLUSTER, one.name), UpstreamState(one, discovery=known))
        for one in map(node, range(count))
    )


def eligible(count):
    return select_eligible(
        Ask(CLUSTER, "m1", CHAT.path, RouteClass.HTTP),
        states(count),
        {},
        now=1.0,
        wall=1.0,
        overload_threshold=3,
        config=CircuitsConfig(),
    )


@pytest.mark.parametrize("size", [500, 32 * 1024, 1024 * 1024], ids=["500B", "32KB", "1MB"])
def test_parse(benchmark, size):
    benchmark(
        parse_call,
        CHAT,
        target=CHAT.path,
        headers=HEADERS,
        body=body(size),
        models=ModelsConfig(),
        request_id="req_1",
    )


@pytest.mark.parametrize("count", [2, 1000])
def test_eligibility(benchmark, count):
    benchmark(eligible, count)


@pytest.mark.parametrize("count", [2, 1000])
@pytest.mark.parametrize("strategy", list(Strategy))
def test_plan(benchmark, strategy, count):
    found = eligible(count)
    benchmark(build_plan, found, size=3, strategy=strategy, turn=1, affinity=NOWHERE)


@pytest.mark.parametrize("count", [100, 1000])
def test_catalog(benchmark, count):
    """Made anew when a node lists other models."""
    listing = states(count, tuple(f"model-{number}" for number in range(300)))
    benchmark(build_catalog, listing, configured=())


def test_a_model_that_is_not_there(benchmark):
    known = dict.fromkeys(f"org/model-{number}-instruct" for number in range(20_000))
    benchmark(nearest_model, "org/model-77-instruc", known)


def test_request_headers(benchmark):
    benchmark(upstream_headers, HEADERS, upstream=node(1), request_id="req_1", instance="a")


def test_answer_headers(benchmark):
    lines = (("date", "x"), ("server", "x"), ("content-type", "x"), ("content-length", "1"))
    benchmark(
        downstream_headers,
        lines,
        upstream=node(1),
        request_id="req_1",
        dialect=Dialect.CHAT,
        stream=False,
    )


def test_answer_head(benchmark):
    benchmark(lambda: HeadReader("POST").feed(HEAD))


def test_relay_until_visible(benchmark):
    def relay():
        return Relay(Dialect.CHAT, hold_bytes=262144, max_event_bytes=8388608).feed(EVENT)

    benchmark(relay)


def test_spliced_event(benchmark):
    """What an event costs after the first visible one, but for the sockets."""
    framing, tail = Chunked(), Tail(Dialect.CHAT)

    def splice():
        tail.push(framing.feed(CHUNK))
        return tail.is_done()

    benchmark(splice)


def test_classify(benchmark):
    fault = Fault.from_error(
        FaultKind.STATUS, ErrorObject(code="model_not_found", param="model"), status=404
    )
    benchmark(
        classify,
        fault,
        provenance=Provenance.OBSERVED,
        lane=RouteClass.HTTP,
        is_account=False,
        visible=False,
    )


def test_cut_a_large_line_byte_by_byte(benchmark):
    line = b"data: " + b"x" * 10_000 + b"\n\n"

    def cut():
        cutter = EventCutter()
        return [cutter.feed(line[at : at + 1]) for at in range(len(line))]

    benchmark(cut)


def test_health_of_a_thousand_nodes(benchmark):
    names = tuple(f"model-{number}" for number in range(5))
    seen = FakeRegistry(tuple(state for _, state in states(1000, names)))
    gateway = FakeGateway(registry=seen)
    benchmark(lambda: orjson.dumps(health_document(gateway, now=1.0, details=True)))


def test_scrape_of_a_thousand_series(benchmark):
    for status in range(1000):
        metrics.child(metrics.REQUESTS, "many", str(status)).inc()
    benchmark(metrics.render)
