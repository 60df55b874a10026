"""The files for Prometheus and Grafana speak of metrics that are there, with the right labels.

Whether the expressions are valid and the alerts fire is for `make prometheus` to say.
"""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import Counter, Gauge, Histogram

from llmgw.observe import metrics

ETC = Path(__file__).parents[2] / "etc"
RULES = (ETC / "prometheus" / "llmgw.rules.yml").read_text()
TESTS = (ETC / "prometheus" / "llmgw.test.yml").read_text()
DASHBOARD = json.loads((ETC / "grafana" / "llmgw.json").read_text())
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"

NAME = re.compile(r"\b(?:gateway|cluster|health_check)_[a-z_]+")
SELECTOR = re.compile(rf"({NAME.pattern})\{{([^}}]*)\}}")
GROUPED = re.compile(r"by \(([^)]*)\)")
OF_A_TARGET = {"instance", "job", "le"}


def series_of(metric) -> dict[str, set[str]]:
    """Each name under which it is stored, with its labels."""
    family = metric.describe()[0]
    labels = set(metric._labelnames)
    match metric:
        case Counter():
            return {f"{family.name}_total": labels}
        case Histogram():
            bucket = {f"{family.name}_bucket": labels | {"le"}}
            return bucket | {f"{family.name}_{end}": labels for end in ("sum", "count")}
        case _:
            return {family.name: labels}


SERIES = {
    name: labels
    for metric in vars(metrics).values()
    if isinstance(metric, Counter | Gauge | Histogram)
    for name, labels in series_of(metric).items()
}
PANELS = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
EXPRESSIONS = [
    *(
        pytest.param(one, id=f"rule {at}")
        for at, one in enumerate(re.findall(r"expr: (.*)", RULES))
    ),
    *(pytest.param(to["expr"], id=one["title"]) for one in PANELS for to in one["targets"]),
]
ALERTS = re.findall(r"- alert: (\w+)", RULES)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_what_is_there(expression):
    names = set(NAME.findall(expression))

    assert names <= SERIES.keys()
    assert names or "up{" in expression
    for name, selected in SELECTOR.findall(expression):
        assert set(re.findall(r"(\w+)\s*[=!]", selected)) <= SERIES[name] | OF_A_TARGET
    labels = set().union(*(SERIES[name] for name in names), OF_A_TARGET)
    for grouped in GROUPED.findall(expression):
        assert {one.strip() for one in grouped.split(",")} <= labels


def test_what_the_alerts_are_tested_with_is_there():
    for name, labels in re.findall(r"series: '(\w+)\{(.*)\}'", TESTS):
        assert name == "up" or name in SERIES
        assert name == "up" or set(re.findall(r"(\w+)=", labels)) <= SERIES[name] | OF_A_TARGET


def test_every_metric_has_a_panel_and_every_panel_a_place_of_its_own():
    shown = {name for one in PANELS for to in one["targets"] for name in NAME.findall(to["expr"])}
    unseen = {name for name in SERIES.keys() - shown if not name.endswith(("_sum", "_count"))}

    assert unseen == set()
    places = [one["gridPos"] for one in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_alert_has_its_section_in_the_runbook():
    headings = re.findall(r"^### (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    anchors = re.findall(r"runbook: docs/runbook\.md#(\w+)", RULES)

    assert ALERTS
    assert anchors == [one.lower() for one in ALERTS]
    assert set(ALERTS) <= set(headings)
