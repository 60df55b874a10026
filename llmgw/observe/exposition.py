"""The text format of Prometheus (0.0.4), as prometheus_client writes it and twice as fast.

With a thousand nodes there are thousands of series, and all of them are the same at each scrape
but for their values: what stands before a value is written once.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

MOST_KEPT = 65_536
ODD = ("_created", "_gsum", "_gcount")  # suffixes that the library shows apart
KINDS = ("counter", "gauge", "histogram", "summary")
_number: Callable[[float], str] = floatToGoString
_WHOLE = {float(number): _number(number) for number in range(256)}
_kept: dict[tuple[object, ...], str] = {}


class _Only:
    """A registry of one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]


def exposition(registry: Collector) -> bytes:
    """All families of a registry. May be called in any thread."""
    if len(_kept) > MOST_KEPT:
        _kept.clear()
    return b"".join(
        _family(one) if _is_plain(one) else generate_latest(_Only(one))
        for one in registry.collect()
    )


def _is_plain(family: Metric) -> bool:
    return family.type in KINDS and not any(
        one.timestamp is not None or one.name.endswith(ODD) for one in family.samples
    )


def _family(family: Metric) -> bytes:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    told = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {name} {told}\n# TYPE {name} {family.type}\n"]
    for sample in family.samples:
        value = sample.value
        lines.append(_start(sample) + (_WHOLE.get(value) or _number(value)) + "\n")
    return "".join(lines).encode()


def _start(sample: Sample) -> str:
    """The name, the labels and a space."""
    key = (sample.name, *sample.labels.items())
    start = _kept.get(key)
    if start is None:
        pairs = sorted(sample.labels.items())
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)
        start = _kept[key] = f"{sample.name}{{{labels}}} " if labels else f"{sample.name} "
    return start


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
