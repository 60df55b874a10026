"""What others build on: metric names and labels, log texts, shapes, codes, commands, defaults.

A change here breaks somebody's dashboard, alert, script or client: it is made on purpose or not
at all.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import orjson
import pytest
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from llmgw.cli import COMMANDS
from llmgw.core.answers import error_body
from llmgw.core.config import Config, Listen, Node
from llmgw.core.discovery import ModelExclusion, State
from llmgw.core.eligibility import Exclusion
from llmgw.core.failover import Outcome
from llmgw.core.fleet import Gpu, UpstreamState
from llmgw.core.health import Status
from llmgw.core.types import Dialect, Provenance, RouteClass, Strategy
from llmgw.observe import metrics
from llmgw.web.health import health_document
from tests.builders import node
from tests.fakes.gateway import FakeGateway, FakeRegistry

ROOT = Path(__file__).resolve().parents[1]

IMMUTABLE = {
    "cluster_nodes_healthy": ("gauge", ()),
    "cluster_nodes_degraded": ("gauge", ()),
    "cluster_nodes_dead": ("gauge", ()),
    "gateway_request_duration_seconds": ("histogram", ()),
    "gateway_requests_total": ("counter", ("model", "status")),
    "gateway_proxy_attempts_total": ("counter", ("model", "status")),
    "gateway_response_passthrough_total": ("counter", ("model", "reason")),
    "gateway_response_client_write_failures_total": ("counter", ("model",)),
    "gateway_model_filter_exclusions_total": ("counter", ("model", "reason")),
    "gateway_node_models_ok": ("gauge", ("node",)),
    "gateway_model_discovery_total": ("counter", ("node", "result")),
    "health_check_panics_total": ("counter", ()),
}
"""As the older gateway had them."""

OURS = {
    "gateway_handoffs_total": ("counter", ("reason",)),
    "gateway_retry_budget_exhausted_total": ("counter", ("pool",)),
    "gateway_withheld_overflows_total": ("counter", ("model",)),
    "gateway_circuit_transitions_total": ("counter", ("assignment", "to")),
    "gateway_time_to_headers_seconds": ("histogram", ()),
    "gateway_time_to_first_visible_event_seconds": ("histogram", ()),
    "gateway_inter_event_gap_seconds": ("histogram", ()),
    "gateway_tokens_total": ("counter", ("model", "direction")),
    "gateway_overhead_seconds": ("histogram", ("stage",)),
    "gateway_queue_depth": ("gauge", ("pool",)),
    "gateway_queue_wait_seconds": ("histogram", ()),
    "gateway_in_flight_requests": ("gauge", ()),
    "gateway_open_streams": ("gauge", ()),
    "gateway_open_websockets": ("gauge", ()),
    "gateway_reloads_total": ("counter", ("result",)),
    "gateway_database_up": ("gauge", ()),
    "gateway_event_loop_lag_seconds": ("histogram", ()),
}

LOG_TEXTS = (
    "models discovered",
    "model discovery recovered",
    "node reports no models",
    "model discovery failed",
    "model discovery expired",
    "node model list changed",
    "configured model not served by node",
    "starting gateway",
    "config loaded",
    "shutting down",
    "gateway stopped",
    "client write failed after commit",
    "stream terminated by upstream failure",
    "response truncated after commit",
    "retrying after connection failure",
    "retrying after streaming failure before first chunk",
    "response exceeded buffer limit; passing through",
    "no node serves requested model",
)

MEMBERS_OF_HEALTH = {
    "status": str,
    "nodes": int,
    "healthy": int,
    "models_ok": int,
    "details": list,
    "database": str,
    "version": str,
    "config": dict,
}
MEMBERS_OF_A_NODE = {
    "ip": str,
    "name": str,
    "url": str,
    "status": str,
    "req_streak": int,
    "ring": (str, type(None)),
    "gpus": list,
    "models": dict,
    "draining": bool,
}


def defined() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each metric of the module by its exposed name."""
    made = (one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase))
    return {_exposed_name(one): (one._type, tuple(one._labelnames)) for one in made}


@pytest.mark.parametrize("name", [*IMMUTABLE, *OURS])
def test_a_metric_keeps_its_name_kind_and_labels(name):
    assert defined()[name] == (IMMUTABLE | OURS)[name]


@pytest.mark.parametrize("name", IMMUTABLE)
def test_a_metric_is_exposed_under_its_exact_name(name):
    kind, labels = IMMUTABLE[name]
    made = (one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase))
    metric = next(one for one in made if _exposed_name(one) == name)
    child = metric.labels(*("x" for _ in labels)) if labels else metric
    (child.observe if kind == "histogram" else child.inc)(0)

    lines = metrics.render().decode().splitlines()

    told = ",".join(f'{label}="x"' for label in labels)
    wanted = (f"{name}_count" if kind == "histogram" else name) + (f"{{{told}}}" if told else "")
    assert f"# TYPE {name} {kind}" in lines
    assert any(line.rsplit(" ", 1)[0] == wanted for line in lines)


def test_request_durations_are_told_apart_up_to_ten_minutes():
    text = metrics.render().decode()

    bounds = re.findall(r'gateway_request_duration_seconds_bucket\{le="([^"]+)"\}', text)
    assert float(bounds[-2]) == 600.0
    assert bounds[-1] == "+Inf"


def test_no_series_tells_when_it_was_created():
    assert "_created" not in metrics.render().decode()


def test_metrics_live_on_the_registry_that_is_served():
    names = {one.name for one in REGISTRY.collect()}

    assert {name.removesuffix("_total") for name in IMMUTABLE} <= names


def _exposed_name(metric: MetricWrapperBase) -> str:
    return metric._name + ("_total" if metric._type == "counter" else "")


def constants() -> Counter[str]:
    """Every string of the program's code, docstrings left out."""
    found: Counter[str] = Counter()
    for path in (ROOT / "llmgw").rglob("*.py"):
        tree = ast.parse(path.read_text())
        prose = {
            id(one.value)
            for one in ast.walk(tree)
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        }
        for one in ast.walk(tree):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                found[one.value] += id(one) not in prose
    return found


CONSTANTS = constants()


@pytest.mark.parametrize("text", LOG_TEXTS)
def test_a_log_text_stands_in_the_code_once(text):
    assert CONSTANTS[text] == 1


def test_health_keeps_its_shape():
    state = UpstreamState(node("a", ring="r1"), gpus=(Gpu("0", 1.0, 2.0, 3.0, 4.0),))
    gateway = FakeGateway(registry=FakeRegistry((state, UpstreamState(node("b")))))

    document = orjson.loads(orjson.dumps(health_document(gateway, now=0.0, details=True)))

    _expect_members(document, MEMBERS_OF_HEALTH)
    for detail in document["details"]:
        _expect_members(detail, MEMBERS_OF_A_NODE)
        assert detail["models"] == {
            "state": "untried",
            "names": None,
            "age_seconds": None,
            "fails": 0,
            "last_error": "",
        }
    assert set(document["config"]) == {"loaded_at", "digest", "last_error"}
    assert document["details"][0]["gpus"] == [
        {
            "gpu": "0",
            "memory_used_bytes": 1.0,
            "memory_total_bytes": 2.0,
            "utilization_percent": 3.0,
            "temperature_celsius": 4.0,
        }
    ]


def _expect_members(document: dict, members: dict) -> None:
    assert set(document) == set(members)
    assert all(isinstance(document[name], kind) for name, kind in members.items())


def test_errors_keep_their_shape_in_each_dialect():
    fields = {
        "status": 503,
        "message": "no healthy node available",
        "type": "service_unavailable",
        "code": "no_eligible_backend",
        "param": "model",
    }

    shapes = {dialect: orjson.loads(error_body(dialect, **fields)) for dialect in Dialect}

    assert shapes.pop(Dialect.MESSAGES) == {
        "type": "error",
        "error": {"type": "api_error", "message": "no healthy node available"},
    }
    for shape in shapes.values():
        assert shape == {
            "error": {
                "message": "no healthy node available",
                "type": "service_unavailable",
                "code": "no_eligible_backend",
                "param": "model",
            }
        }


@pytest.mark.parametrize(
    "code",
    [
        *("invalid_request", "model_not_specified", "invalid_api_key", "model_not_allowed"),
        *("model_not_found", "request_too_large", "no_eligible_backend", "no_reachable_backend"),
        *("upstream_error", "upstream_timeout", "pinned_assignment_unavailable"),
        *("server_is_overloaded", "file_assignment_conflict"),
    ],
)
def test_a_code_that_clients_branch_on_is_still_given(code):
    assert CONSTANTS[code] >= 1


@pytest.mark.parametrize(
    ("words", "values"),
    [
        pytest.param(
            State, ["untried", "known", "known_empty", "degraded", "expired"], id="discovery"
        ),
        pytest.param(Status, ["healthy", "degraded", "dead"], id="health"),
        pytest.param(ModelExclusion, ["missing", "empty", "expired"], id="model filter"),
        pytest.param(
            Exclusion,
            [
                *("ring", "missing", "empty", "expired", "dead", "skipped"),
                *("circuit_open", "capability", "draining", "pinned"),
            ],
            id="exclusions",
        ),
        pytest.param(
            Outcome, ["succeeded", "failed", "cancelled", "retryable_failed"], id="attempts"
        ),
        pytest.param(Provenance, ["configured", "observed", "preserved"], id="provenance"),
        pytest.param(
            RouteClass, ["http", "sse", "websocket", "compact", "file", "audio"], id="lanes"
        ),
        pytest.param(
            Strategy,
            ["round_robin", "least_load", "rendezvous", "least_recent_success"],
            id="strategies",
        ),
    ],
)
def test_words_that_are_shown_and_stored_stay_as_they_are(words, values):
    assert [one.value for one in words] == values


@pytest.mark.parametrize(
    "command",
    [
        *("serve", "check", "demo", "sim", "status", "reload", "upgrade", "explain"),
        *("key", "init", "config", "drain"),
    ],
)
def test_a_command_that_scripts_call_is_there(command):
    assert command in COMMANDS


def test_defaults_that_operators_rely_on():
    made = Config()

    assert made.gateway.listen == (Listen(port=8000),)
    assert made.gateway.metrics_listen == (Listen(port=9090),)
    assert (made.gateway.health_interval, made.gateway.health_fail_threshold) == (3.0, 3)
    assert made.gateway.max_request_body_bytes == 32 * 2**20
    assert made.gateway.max_buffered_response_bytes == 8 * 2**20
    assert (made.gateway.drain_timeout, made.gateway.request_overload_threshold) == (600.0, 3)
    assert (made.routing.plan_size, made.routing.header_timeout) == (3, None)
    assert (made.circuits.failure_threshold, made.circuits.open_for) == (3, 60.0)
    assert (made.streams.commit_after, made.streams.keepalive) == (10.0, 10.0)
    assert (made.streams.first_event_timeout, made.streams.idle_timeout) == (None, 300.0)
    assert made.streams.hold_bytes == 256 * 1024
    assert made.discovery.account_interval == 300.0
    assert Node.__dataclass_fields__["health_path"].default == "/health"
