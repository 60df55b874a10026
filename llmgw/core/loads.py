"""How busy an engine is, and its GPUs, from the text of its `/metrics` page.

The names are those of vLLM, SGLang, llama.cpp and TGI; of GPUs the plain ones and DCGM's
exporter's. The format is Prometheus' text format 0.0.4; only lines with a wanted name are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from llmgw.core.fleet import EngineLoad, Gpu

MIB = 1024 * 1024
MAX_GPUS = 1024


class Field(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    CACHE_USE = "cache_use"
    MEMORY_USED = "memory_used_bytes"
    MEMORY_FREE = "memory_free_bytes"
    MEMORY_TOTAL = "memory_total_bytes"
    UTILIZATION = "utilization_percent"
    TEMPERATURE = "temperature_celsius"


ENGINE = {
    "vllm:num_requests_running": (Field.RUNNING, 1),
    "vllm:num_requests_waiting": (Field.WAITING, 1),
    "vllm:kv_cache_usage_perc": (Field.CACHE_USE, 1),
    "vllm:gpu_cache_usage_perc": (Field.CACHE_USE, 1),  # its name before 0.10
    "sglang:num_running_reqs": (Field.RUNNING, 1),
    "sglang:num_queue_reqs": (Field.WAITING, 1),
    "sglang:token_usage": (Field.CACHE_USE, 1),
    "llamacpp:requests_processing": (Field.RUNNING, 1),
    "llamacpp:requests_deferred": (Field.WAITING, 1),
    "llamacpp:kv_cache_usage_ratio": (Field.CACHE_USE, 1),
    "tgi_batch_current_size": (Field.RUNNING, 1),
    "tgi_queue_size": (Field.WAITING, 1),
}
GPU = {
    "gpu_memory_used_bytes": (Field.MEMORY_USED, 1),
    "gpu_memory_total_bytes": (Field.MEMORY_TOTAL, 1),
    "gpu_utilization_percent": (Field.UTILIZATION, 1),
    "gpu_temperature_celsius": (Field.TEMPERATURE, 1),
    "DCGM_FI_DEV_FB_USED": (Field.MEMORY_USED, MIB),
    "DCGM_FI_DEV_FB_FREE": (Field.MEMORY_FREE, MIB),
    "DCGM_FI_DEV_FB_TOTAL": (Field.MEMORY_TOTAL, MIB),
    "DCGM_FI_DEV_GPU_UTIL": (Field.UTILIZATION, 1),
    "DCGM_FI_DEV_GPU_TEMP": (Field.TEMPERATURE, 1),
}

_LABELS = r'\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}'
_SAMPLE = re.compile(rf"(?P<name>[a-zA-Z_:][\w:]*)[ \t]*(?:{_LABELS})?[ \t]*(?P<value>\S+)")
_GPU_LABEL = re.compile(r'(?:^|,)\s*gpu\s*=\s*"(?P<gpu>(?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class _Sample:
    field: Field
    labels: str
    value: float


def parse_load(text: str) -> EngineLoad | None:
    """Requests summed over the engines of the node, and its fullest cache; None where the page
    does not tell how many requests run.
    """
    found: dict[Field, list[float]] = {}
    for sample in _samples(text, ENGINE):
        found.setdefault(sample.field, []).append(sample.value)
    if Field.RUNNING not in found:
        return None
    return EngineLoad(
        running=sum(found[Field.RUNNING]),
        waiting=sum(found.get(Field.WAITING, ())),
        cache_use=min(1.0, max(found.get(Field.CACHE_USE, (0.0,)))),
    )


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """One entry for each `gpu` label, in the order of the page."""
    found: dict[str, dict[Field, float]] = {}
    for sample in _samples(text, GPU):
        label = _GPU_LABEL.search(sample.labels)
        if label is not None and (label["gpu"] in found or len(found) < MAX_GPUS):
            found.setdefault(label["gpu"], {})[sample.field] = sample.value
    return tuple(_gpu(name, fields) for name, fields in found.items())


def _gpu(name: str, fields: dict[Field, float]) -> Gpu:
    used, free = fields.get(Field.MEMORY_USED), fields.get(Field.MEMORY_FREE)
    total = fields.get(Field.MEMORY_TOTAL)
    if total is None and used is not None and free is not None:
        total = used + free  # DCGM's exporter leaves the total out by default
    return Gpu(
        gpu=name,
        memory_used_bytes=used,
        memory_total_bytes=total,
        utilization_percent=fields.get(Field.UTILIZATION),
        temperature_celsius=fields.get(Field.TEMPERATURE),
    )


def _samples(text: str, wanted: dict[str, tuple[Field, int]]) -> Iterator[_Sample]:
    prefixes = tuple(wanted)
    for line in text.split("\n"):
        if not line.startswith(prefixes):  # most lines are histogram buckets of other names
            continue
        match = _SAMPLE.match(line)
        if match is None or match["name"] not in wanted:
            continue
        value = _value(match["value"])
        if value is not None:
            field, unit = wanted[match["name"]]
            yield _Sample(field, match["labels"] or "", value * unit)


def _value(text: str) -> float | None:
    """A gauge that is not a number, infinite or below zero says nothing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
