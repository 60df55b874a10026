"""`docs/metrics.md` names every metric with its kind, labels and meaning, and no other."""

from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram

from llmgw.observe import metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def table() -> str:
    """To be put into the page where this test fails."""
    rows = ["| metric | kind | |", "|---|---|---|"]
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            rows.append(row_of(metric))
    return "\n".join(rows)


def row_of(metric: Counter | Gauge | Histogram) -> str:
    family = metric.describe()[0]
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = "{" + ",".join(metric._labelnames) + "}" if metric._labelnames else ""
    return f"| `{name}{labels}` | {family.type} | {family.documentation} |"


def test_the_page_is_in_step_with_the_code():
    page = PAGE.read_text()

    assert table() in page
    assert page.count("\n| `") == table().count("\n| `")
