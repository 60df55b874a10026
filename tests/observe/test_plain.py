"""Our metrics and prometheus_client's own, told the same, say the same."""

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from llmgw.observe import plain


def told(module, tell):
    registry = CollectorRegistry()
    tell(module, registry)
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


def counts(module, registry):
    counter = module.Counter("a_total", "A.", ["b"], registry=registry)
    counter.labels("x").inc()
    counter.labels("x").inc(2.5)
    counter.labels("y").inc(0)


def gauges(module, registry):
    gauge = module.Gauge("a", "A.", registry=registry)
    gauge.set(4)
    gauge.inc()
    gauge.dec(2)


def observes(module, registry):
    histogram = module.Histogram("a", "A.", ["b"], buckets=(0.1, 1.0, 5.0), registry=registry)
    for value in (0.0, 0.1, 0.11, 1.0, 4.9, 5.0, 5.1, 1e9, -1.0):
        histogram.labels("x").observe(value)


@pytest.mark.parametrize("tell", [counts, gauges, observes])
def test_what_is_shown_is_what_the_library_would_show(tell):
    assert told(plain, tell) == told(prometheus_client, tell)


def test_a_table_shows_what_it_is_told_at_the_moment_of_reading():
    def fills(module, registry):
        gauge = module.Gauge("a", "A.", ["b", "c"], registry=registry)
        gauge.labels("x", "y").set(1)
        gauge.labels("x", "z").set(0)

    def tells(module, registry):
        rows.extend([(("x", "y"), 1.0), (("x", "z"), 0.0)])
        module.GaugeTable("a", "A.", ["b", "c"], registry=registry).tell(lambda: rows)

    rows = []
    assert told(plain, tells) == told(prometheus_client, fills)


def test_a_table_that_nobody_fills_is_empty_and_takes_series_like_any_gauge():
    def labels(module, registry):
        module.Gauge("a", "A.", ["b"], registry=registry).labels("x").set(1)

    def tables(module, registry):
        module.GaugeTable("a", "A.", ["b"], registry=registry).labels("x").set(1)

    assert told(plain, tables) == told(prometheus_client, labels)
