"""The page of metrics is the library's, byte for byte."""

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Enum,
    Gauge,
    Histogram,
    Info,
    PlatformCollector,
    Summary,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, UntypedMetricFamily

from llmgw.observe import exposition as module
from llmgw.observe.exposition import exposition


@pytest.fixture
def registry():
    return CollectorRegistry()


def same(registry: CollectorRegistry) -> None:
    expected = generate_latest(registry)
    for _ in range(2):  # the second time from what is kept
        assert exposition(registry) == expected


@pytest.mark.parametrize("kind", [Counter, Gauge, Histogram, Summary])
def test_each_kind_with_labels_and_without(registry, kind):
    plain = kind("plain", "Without.", registry=registry)
    labelled = kind("labelled", "With.", ["z", "a"], registry=registry)
    tells = {Counter: "inc", Gauge: "set"}.get(kind, "observe")
    for child in (plain, labelled.labels("1", "2"), labelled.labels("2", "1")):
        getattr(child, tells)(0.25)

    same(registry)


@pytest.mark.parametrize(
    "value",
    [0, 1, 255, 256, -1, 0.1, 1e6, 1234567.0, 1e21, 1e-7, float("inf"), -float("inf")],
)
def test_each_number(registry, value):
    Gauge("a", "A.", registry=registry).set(value)

    same(registry)


def test_what_is_not_a_number(registry):
    Gauge("a", "A.", registry=registry).set(float("nan"))

    assert exposition(registry) == generate_latest(registry)


@pytest.mark.parametrize("text", ["", 'a "quoted" one', "a\\b", "two\nlines", "模型 é", "a,b={}"])
def test_each_text(registry, text):
    Gauge("a", f"Says {text}.", ["b"], registry=registry).labels(text).set(1)

    same(registry)


def test_other_kinds_are_left_to_the_library(registry):
    Info("a", "A.", registry=registry).info({"version": "1"})
    Enum("b", "B.", states=["on", "off"], registry=registry).state("off")
    PlatformCollector(registry=registry)

    class Odd:
        def collect(self):
            stamped = GaugeMetricFamily("c", "C.")
            stamped.add_metric([], 1, timestamp=1_700_000_000)
            yield stamped
            yield UntypedMetricFamily("d", "D.", value=2)

    registry.register(Odd())

    same(registry)


def test_labels_of_other_names_are_other_labels():
    for label in ("x", "y"):
        registry = CollectorRegistry()
        Gauge("a", "A.", [label], registry=registry).labels("1").set(1)

        same(registry)


def test_what_is_kept_is_bounded(registry, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    gauge = Gauge("a", "A.", ["b"], registry=registry)
    for number in range(20):
        gauge.labels(number).set(1)

    same(registry)
    gauge.clear()
    same(registry)
    assert len(module._kept) == 0
