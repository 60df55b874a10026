"""Every metric of the gateway, defined once on the global registry. Names and labels are public.

A label's value is one of few: configured names, our own codes, or a model that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, TypeVar, cast

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, disable_created_metrics

from llmgw import __version__
from llmgw.observe.exposition import exposition
from llmgw.observe.plain import Counter, Gauge, GaugeTable, Histogram

_disable_created: Callable[[], None] = disable_created_metrics
_disable_created()  # they double the series, and no dashboard of ours reads them

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
OTHER: Final = "other"
MAX_LABEL_CHARS: Final = 200
MAX_CHILDREN: Final = 8192

REQUEST_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
    *(5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
GAP_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
LAG_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
STAGE_BUCKETS: Final = (
    *(0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005),
    *(0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0),
)

NODES_HEALTHY = Gauge("cluster_nodes_healthy", "Nodes that pass their health check.")
NODES_DEGRADED = Gauge("cluster_nodes_degraded", "Nodes that are used only as a fallback.")
NODES_DEAD = Gauge("cluster_nodes_dead", "Nodes that get no requests.")
NODE_MODELS_OK = GaugeTable(
    "gateway_node_models_ok", "1 while the node's model list is known, else 0.", ["node"]
)
MODEL_DISCOVERY = Counter(
    "gateway_model_discovery_total",
    "Model listings of nodes by result (success, empty, error).",
    ["node", "result"],
)
HEALTH_CHECK_PANICS = Counter(
    "health_check_panics_total", "Health checks that failed by a fault of the gateway itself."
)

REQUESTS = Counter(
    "gateway_requests_total", "Answered requests by the client's status.", ["model", "status"]
)
REQUEST_DURATION = Histogram(
    "gateway_request_duration_seconds",
    "From the request's head to the end of the answer.",
    buckets=REQUEST_BUCKETS,
)
ATTEMPTS = Counter(
    "gateway_proxy_attempts_total",
    "Tries on an upstream by its status, or by what failed before one came.",
    ["model", "status"],
)
PASSTHROUGH = Counter(
    "gateway_response_passthrough_total",
    "Answers that were passed through and so could no longer be replaced.",
    ["model", "reason"],
)
CLIENT_WRITE_FAILURES = Counter(
    "gateway_response_client_write_failures_total",
    "Answers that a client did not take to their end.",
    ["model"],
)
MODEL_FILTER_EXCLUSIONS = Counter(
    "gateway_model_filter_exclusions_total",
    "Assignments left out of a plan because of the model (missing, empty, expired).",
    ["model", "reason"],
)

HANDOFFS = Counter("gateway_handoffs_total", "Moves to the next candidate, by reason.", ["reason"])
RETRY_BUDGET_EXHAUSTED = Counter(
    "gateway_retry_budget_exhausted_total",
    "Failures returned because the pool's retry budget was spent.",
    ["pool"],
)
WITHHELD_OVERFLOWS = Counter(
    "gateway_withheld_overflows_total",
    "Streams committed before visible output because too much was held back.",
    ["model"],
)
CIRCUIT_TRANSITIONS = Counter(
    "gateway_circuit_transitions_total",
    "Circuits that changed to a state (closed, open, half_open).",
    ["assignment", "to"],
)

ASSIGNMENT_REQUESTS = Counter(
    "gateway_assignment_requests_total",
    "Attempts on an assignment by outcome (succeeded, failed, cancelled, retryable_failed).",
    ["assignment", "outcome"],
)
ASSIGNMENT_IN_FLIGHT = Gauge(
    "gateway_assignment_in_flight_requests",
    "Attempts that run on an assignment.",
    ["assignment"],
)
ASSIGNMENT_FIRST_VISIBLE = Histogram(
    "gateway_assignment_first_visible_event_seconds",
    "From an attempt's start to the first visible event of its stream.",
    ["assignment"],
    buckets=REQUEST_BUCKETS,
)
CIRCUITS = Gauge(
    "gateway_circuits",
    "Circuits of an assignment that are not closed (open, half_open).",
    ["assignment", "state"],
)
NODE_STATUS = GaugeTable(
    "gateway_node_status",
    "1 for the status that a node has (healthy, degraded, dead), else 0.",
    ["node", "status"],
)
NODE_DRAINING = Gauge(
    "gateway_node_draining", "1 for a node that is drained: watched, no new work.", ["node"]
)

TIME_TO_HEADERS = Histogram(
    "gateway_time_to_headers_seconds",
    "From sending a request to an upstream to its response head.",
    buckets=REQUEST_BUCKETS,
)
TIME_TO_FIRST_EVENT = Histogram(
    "gateway_time_to_first_visible_event_seconds",
    "From the client's request to the first visible event of its stream.",
    buckets=REQUEST_BUCKETS,
)
INTER_EVENT_GAP = Histogram(
    "gateway_inter_event_gap_seconds",
    "Mean time between two events of a stream, once for each stream.",
    buckets=GAP_BUCKETS,
)
TIMEOUTS = Counter(
    "gateway_timeouts_total",
    "Waits that were given up, by what was waited for; no histogram counts them.",
    ["kind"],
)
TOKENS = Counter(
    "gateway_tokens_total",
    "Tokens as upstreams count them, by direction (in, out).",
    ["model", "direction"],
)
STAGE_DURATION = Histogram(
    "gateway_overhead_seconds",
    "The gateway's own time in a stage of a request.",
    ["stage"],
    buckets=STAGE_BUCKETS,
)

QUEUE_DEPTH = Gauge("gateway_queue_depth", "Requests that wait for capacity.", ["pool"])
QUEUE_WAIT = Histogram(
    "gateway_queue_wait_seconds", "Time spent waiting for capacity.", buckets=REQUEST_BUCKETS
)
IN_FLIGHT = Gauge("gateway_in_flight_requests", "Inference requests being served.")
OPEN_STREAMS = Gauge("gateway_open_streams", "Event streams being relayed.")
OPEN_WEBSOCKETS = Gauge("gateway_open_websockets", "Client websockets.")
OPEN_CONNECTIONS = Gauge("gateway_open_connections", "Client connections.")
UPSTREAM_CONNECTIONS = Gauge(
    "gateway_upstream_connections",
    "Connections to an upstream (busy, idle).",
    ["upstream", "state"],
)

RELOADS = Counter("gateway_reloads_total", "Reloads by result (success, error).", ["result"])
CONFIG_LOADED = Gauge(
    "gateway_config_last_reload_timestamp_seconds", "When the running configuration was loaded."
)
DATABASE_UP = Gauge("gateway_database_up", "1 while the database answers, else 0.")
DATABASE_SPOOLED = Gauge(
    "gateway_database_spooled_rows", "Rows that wait on disk for the database."
)
EVENT_LOOP_LAG = Histogram(
    "gateway_event_loop_lag_seconds", "How late the event loop runs.", buckets=LAG_BUCKETS
)
BUILD_INFO = Gauge("gateway_build_info", "Always 1.", ["version"])
BUILD_INFO.labels(__version__).set(1)

M = TypeVar("M", Counter, Gauge, Histogram)

_children: dict[tuple[object, ...], object] = {}
_refresh: Callable[[], None] | None = None


def child(metric: M, *labels: str) -> M:
    """`metric.labels(*labels)`, remembered: a third of its cost on the request path."""
    key = (metric, *labels)
    known = _children.get(key)
    if known is None:
        if len(_children) >= MAX_CHILDREN:
            _children.clear()
        known = _children[key] = metric.labels(*labels)
    return cast(M, known)


def forget(metric: Counter | Gauge | Histogram, *labels: str) -> None:
    """Drop one series: what it counted is gone from the configuration."""
    _children.pop((metric, *labels), None)
    metric.remove(*labels)


def model_label(model: str | None, known: Container[str] | Callable[[str], bool]) -> str:
    """The `model` label: the name if a configuration or catalog knows it, else `other`.

    Clients choose names: without this rule each made-up one would be a series for ever.
    """
    if not model or len(model) > MAX_LABEL_CHARS or not model.isprintable():
        return OTHER
    is_known = known(model) if callable(known) else model in known
    return model if is_known else OTHER


def status_label(status: int) -> str:
    return _STATUS_LABELS.get(status) or str(status)


def before_render(refresh: Callable[[], None]) -> None:
    """Who sets the gauges that are counted only when they are read; the last caller wins."""
    global _refresh
    _refresh = refresh


def refresh() -> None:
    """Call it in the event loop, right before `render`."""
    if _refresh is not None:
        _refresh()


def render() -> bytes:
    """The text exposition (version 0.0.4). Takes milliseconds: call it in a thread."""
    return exposition(REGISTRY)


_STATUS_LABELS: Final = {status: str(status) for status in range(100, 600)}
