"""Traces by OpenTelemetry, in the names of its GenAI conventions: metadata, never a prompt.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from llmgw import __version__
from llmgw.core.config import TracingConfig
from llmgw.core.eligibility import Candidate
from llmgw.core.types import Headers, PoolName
from llmgw.core.usage import Usage
from llmgw.core.wire import Call

NAME: Final = "llmgw"
PATH: Final = "/v1/traces"  # https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
EXPORT_WITHIN: Final = 3.0  # seconds; a stop waits for it
OPERATIONS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "chat",
    "/v1/messages": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
}
OTHER_OPERATION: Final = "generate_content"

Attributes = dict[str, str | int | bool]


def open_tracer(config: TracingConfig, *, instance: str) -> OtelTracer:
    """Sends to a collector, by OTLP over HTTP."""
    place = (config.endpoint or "").rstrip("/")
    endpoint = place if place.endswith(PATH) else place + PATH
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_WITHIN)
    return OtelTracer(BatchSpanProcessor(exporter), sample=config.sample, instance=instance)


class OtelTracer:
    """Makes the spans of requests; `processor` carries them away, in a thread of its own."""

    def __init__(self, processor: SpanProcessor, *, sample: float, instance: str) -> None:
        resource = {
            "service.name": NAME,
            "service.version": __version__,
            "service.instance.id": instance,
        }
        self._provider = TracerProvider(
            sampler=ParentBasedTraceIdRatio(sample),
            resource=Resource.create(resource),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(NAME, __version__)

    def begin(self, call: Call, *, pool: PoolName, model: str) -> OtelRequest:
        operation = OPERATIONS.get(call.route.path, OTHER_OPERATION)
        about: Attributes = {
            "http.request.method": call.route.method,
            "http.route": call.route.path,
            "gen_ai.operation.name": operation,
            "gen_ai.request.model": model,
            "llmgw.pool": pool,
            "llmgw.request_id": call.request_id,
            "llmgw.stream": call.stream,
        }
        span = self._tracer.start_span(
            f"{operation} {model}",
            context=_PROPAGATOR.extract(call.headers, Context(), _GETTER),
            kind=SpanKind.SERVER,
            attributes=about,
        )
        return OtelRequest(self, span, f"{operation} {model}", about)

    def start(self, name: str, parent: Span, attributes: Attributes) -> Span:
        return self._tracer.start_span(
            name,
            context=set_span_in_context(parent, Context()),
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )

    def close(self) -> None:
        """Send what is left. Blocks: call it in a thread."""
        self._provider.shutdown()


class OtelRequest:
    def __init__(self, tracer: OtelTracer, span: Span, name: str, about: Attributes) -> None:
        self._tracer = tracer
        self._span = span
        self._name = name
        self._about = {key: about[key] for key in about if key.startswith("gen_ai.")}

    def attempt(self, candidate: Candidate, *, ordinal: int) -> OtelAttempt:
        url = candidate.upstream.url
        attributes: Attributes = {
            **self._about,
            "server.address": url.host,
            "server.port": url.port,
            "llmgw.assignment": candidate.assignment,
            "llmgw.attempt": ordinal,
        }
        return OtelAttempt(self._tracer.start(self._name, self._span, attributes))

    def handoff(self, reason: str) -> None:
        self._span.add_event("handoff", {"llmgw.reason": reason})

    def end(self, *, status: int, attempts: int, usage: Usage, error: str | None) -> None:
        span = self._span
        span.set_attribute("llmgw.attempts", attempts)
        for direction, tokens in (("input", usage.tokens_in), ("output", usage.tokens_out)):
            if tokens is not None:
                span.set_attribute(f"gen_ai.usage.{direction}_tokens", tokens)
        if status:
            span.set_attribute("http.response.status_code", status)
        if error is not None or status >= 500:
            _fail(span, error or str(status))
        span.end()


class OtelAttempt:
    """`traceparent` is what its upstream continues the trace by."""

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, set_span_in_context(self._span, Context()))
        return carrier["traceparent"]

    def first_visible(self) -> None:
        self._span.add_event("first_visible")

    def end(self, *, status: int | None, error: str | None) -> None:
        if status is not None:
            self._span.set_attribute("http.response.status_code", status)
        if error is not None:
            _fail(self._span, error)
        self._span.end()


def _fail(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR))


class _HeaderGetter(Getter[Headers]):
    """Reads a client's header lines."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        return [value for name, value in carrier if name == key] or None

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


_GETTER = _HeaderGetter()
_PROPAGATOR = TraceContextTextMapPropagator()
