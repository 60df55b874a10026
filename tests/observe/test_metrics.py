import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from llmgw import __version__
from llmgw.observe import metrics
from tests.counting import calls, grows_evenly

PUBLIC = {
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
    "gateway_handoffs_total": ("counter", ("reason",)),
    "gateway_retry_budget_exhausted_total": ("counter", ("pool",)),
    "gateway_withheld_overflows_total": ("counter", ("model",)),
    "gateway_circuit_transitions_total": ("counter", ("assignment", "to")),
    "gateway_assignment_requests_total": ("counter", ("assignment", "outcome")),
    "gateway_assignment_in_flight_requests": ("gauge", ("assignment",)),
    "gateway_assignment_first_visible_event_seconds": ("histogram", ("assignment",)),
    "gateway_circuits": ("gauge", ("assignment", "state")),
    "gateway_node_status": ("gauge", ("node", "status")),
    "gateway_node_draining": ("gauge", ("node",)),
    "gateway_timeouts_total": ("counter", ("kind",)),
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
    "gateway_open_connections": ("gauge", ()),
    "gateway_upstream_connections": ("gauge", ("upstream", "state")),
    "gateway_reloads_total": ("counter", ("result",)),
    "gateway_config_last_reload_timestamp_seconds": ("gauge", ()),
    "gateway_database_up": ("gauge", ()),
    "gateway_database_spooled_rows": ("gauge", ()),
    "gateway_event_loop_lag_seconds": ("histogram", ()),
    "gateway_build_info": ("gauge", ("version",)),
}
OURS = [
    one
    for one in vars(metrics).values()
    if isinstance(one, metrics.Counter | metrics.Gauge | metrics.Histogram)
]


def exposed_name(metric):
    family = metric.describe()[0]
    return f"{family.name}_total" if family.type == "counter" else family.name


def scrape():
    families = text_string_to_metric_families(metrics.render().decode())
    return {sample for family in families for sample in map(as_key, family.samples)}


def as_key(sample):
    return (sample.name, tuple(sorted(sample.labels.items())), sample.value)


def test_names_types_and_labels_are_the_public_ones():
    defined = {exposed_name(one): (one.describe()[0].type, tuple(one._labelnames)) for one in OURS}

    assert defined == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_the_exposition_announces_each_metric_under_its_own_name(name):
    kind = PUBLIC[name][0]

    assert f"# TYPE {name} {kind}\n" in metrics.render().decode()


def test_a_counter_has_no_second_series_for_its_creation():
    metrics.child(metrics.REQUESTS, "created-model", "200").inc()

    assert "_created" not in metrics.render().decode()


def test_durations_are_told_apart_up_to_ten_minutes():
    edges = [
        sample.labels["le"]
        for sample in next(iter(metrics.REQUEST_DURATION.collect())).samples
        if "le" in sample.labels
    ]

    assert edges[-2:] == ["600.0", "+Inf"]


def test_the_build_is_told_by_its_version():
    assert REGISTRY.get_sample_value("gateway_build_info", {"version": __version__}) == 1


def test_a_remembered_child_counts_on_the_same_series():
    metrics.child(metrics.HANDOFFS, "test-reason").inc()
    metrics.child(metrics.HANDOFFS, "test-reason").inc()
    metrics.HANDOFFS.labels("test-reason").inc()

    assert REGISTRY.get_sample_value("gateway_handoffs_total", {"reason": "test-reason"}) == 3


def test_children_of_two_metrics_with_equal_labels_are_kept_apart():
    one = metrics.child(metrics.REQUESTS, "same", "500")
    other = metrics.child(metrics.ATTEMPTS, "same", "500")

    assert one is not other


def test_the_memory_of_children_is_bounded_and_loses_no_count(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_CHILDREN", 4)
    monkeypatch.setattr(metrics, "_children", {})

    for turn in range(2):
        for status in range(6):
            metrics.child(metrics.ATTEMPTS, "bounded", str(status)).inc()

        assert len(metrics._children) <= 4, turn
    labels = {"model": "bounded", "status": "0"}
    assert REGISTRY.get_sample_value("gateway_proxy_attempts_total", labels) == 2


def test_a_forgotten_series_is_gone_and_may_come_back_from_zero():
    metrics.child(metrics.NODE_MODELS_OK, "gone").set(1)

    metrics.forget(metrics.NODE_MODELS_OK, "gone")

    assert REGISTRY.get_sample_value("gateway_node_models_ok", {"node": "gone"}) is None
    metrics.child(metrics.NODE_MODELS_OK, "gone").set(0)
    assert REGISTRY.get_sample_value("gateway_node_models_ok", {"node": "gone"}) == 0


def test_forgetting_what_was_never_counted_is_no_fault():
    metrics.forget(metrics.NODE_MODELS_OK, "never")


@pytest.mark.parametrize(
    ("model", "label"),
    [
        pytest.param("org/qwen:7b", "org/qwen:7b", id="known"),
        pytest.param('quote"d', 'quote"d', id="known, with a quote"),
        pytest.param("back\\slash", "back\\slash", id="known, with a backslash"),
        pytest.param("made-up", "other", id="unknown"),
        pytest.param("", "other", id="empty"),
        pytest.param(None, "other", id="none at all"),
        pytest.param("line\nbreak", "other", id="known, but breaks the line"),
        pytest.param("\ud800", "other", id="known, but a lone surrogate"),
        pytest.param("x" * 201, "other", id="known, but endless"),
    ],
)
def test_a_model_becomes_a_label_only_if_known_and_printable(model, label):
    known = frozenset(
        {"org/qwen:7b", 'quote"d', "back\\slash", "", "line\nbreak", "\ud800", "x" * 201}
    )

    assert metrics.model_label(model, known) == label
    assert metrics.model_label(model, known.__contains__) == label


@pytest.mark.parametrize("model", ['quote"d', "back\\slash", "{brace}=,", "gemäß/模型"])
def test_an_odd_name_comes_back_from_the_exposition_as_it_was(model):
    label = metrics.model_label(model, {model})

    metrics.child(metrics.CLIENT_WRITE_FAILURES, label).inc()

    name = "gateway_response_client_write_failures_total"
    assert (name, (("model", model),), 1.0) in scrape()


@pytest.mark.parametrize(("status", "label"), [(200, "200"), (599, "599"), (999, "999")])
def test_a_status_is_labelled_by_its_number(status, label):
    assert metrics.status_label(status) == label


def test_each_further_series_costs_a_scrape_as_much_as_the_one_before():
    metrics.render()  # what the tests before it made is written for the first time
    costs = []
    for hundred in range(1, 5):
        for status in range(100):
            metrics.child(metrics.REQUESTS, "many", f"{hundred}{status:02}").inc()
        costs.append(calls(metrics.render))

    assert grows_evenly(costs)
