"""How busy an engine is, and its GPUs, from the text of its `/metrics` page.

The names are those of vLLM, SGLang, llama.cpp and TGI; of GPUs the plain ones and DCGM's
exporter's. The format is Prometheus' text format 0.0.4, in which all lines of a name stand
together; exporters of GPUs are often scripts that do not keep to that. A page is searched for
names, not read: most of its lines are buckets of other ones.
"""

from __future__ import annotations

import re
from enum import StrEnum
from math import inf
from typing import NamedTuple

from llmgw.core.fleet import EngineLoad, Gpu

MIB = 1024 * 1024
MAX_GPUS = 1024


class Engine(NamedTuple):
    """How one kind of engine calls its gauges."""

    running: bytes
    waiting: bytes
    cache_use: tuple[bytes, ...]  # the newest name first


ENGINES = (
    Engine(
        b"vllm:num_requests_running",
        b"vllm:num_requests_waiting",
        (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc"),  # the second before 0.10
    ),
    Engine(b"sglang:num_running_reqs", b"sglang:num_queue_reqs", (b"sglang:token_usage",)),
    Engine(
        b"llamacpp:requests_processing",
        b"llamacpp:requests_deferred",
        (b"llamacpp:kv_cache_usage_ratio",),
    ),
    Engine(b"tgi_batch_current_size", b"tgi_queue_size", ()),
)


class Field(StrEnum):
    MEMORY_USED = "memory_used_bytes"
    MEMORY_FREE = "memory_free_bytes"
    MEMORY_TOTAL = "memory_total_bytes"
    UTILIZATION = "utilization_percent"
    TEMPERATURE = "temperature_celsius"


GPU = {
    b"gpu_memory_used_bytes": (Field.MEMORY_USED, 1),
    b"gpu_memory_total_bytes": (Field.MEMORY_TOTAL, 1),
    b"gpu_utilization_percent": (Field.UTILIZATION, 1),
    b"gpu_temperature_celsius": (Field.TEMPERATURE, 1),
    b"DCGM_FI_DEV_FB_USED": (Field.MEMORY_USED, MIB),
    b"DCGM_FI_DEV_FB_FREE": (Field.MEMORY_FREE, MIB),
    b"DCGM_FI_DEV_FB_TOTAL": (Field.MEMORY_TOTAL, MIB),
    b"DCGM_FI_DEV_GPU_UTIL": (Field.UTILIZATION, 1),
    b"DCGM_FI_DEV_GPU_TEMP": (Field.TEMPERATURE, 1),
}

_LABELS = rb'\{(?P<labels>(?:[^"}\n]++|"(?:[^"\\\n]++|\\.)*+")*+)\}'
_BEHIND_NAME = re.compile(rb"(?![\w:])[ \t]*(?:" + _LABELS + rb")?[ \t]*(?P<value>\S+)")
_GPU_LABEL = re.compile(rb'(?:^|,)\s*gpu\s*=\s*"(?P<gpu>(?:[^"\\]|\\.)*)"')


def parse_load(page: bytes) -> EngineLoad | None:
    """Requests summed over the engines of the node, and its fullest cache; None where the page
    does not tell how many requests run.
    """
    lines = b"\n" + page
    for engine in ENGINES:
        running = _values(lines, engine.running)
        if running:
            cache_use = next(filter(None, (_values(lines, name) for name in engine.cache_use)), ())
            return EngineLoad(
                running=sum(running),
                waiting=sum(_values(lines, engine.waiting)),
                cache_use=min(1.0, max(cache_use, default=0.0)),
            )
    return None


def parse_gpus(page: bytes) -> tuple[Gpu, ...]:
    """One entry for each `gpu` label."""
    lines = b"\n" + page
    found: dict[bytes, dict[Field, float]] = {}
    for name, (field, unit) in GPU.items():
        for labels, value in _samples(lines, name, scattered=True):
            label = _GPU_LABEL.search(labels)
            if label is not None and (label["gpu"] in found or len(found) < MAX_GPUS):
                found.setdefault(label["gpu"], {})[field] = value * unit
    return tuple(_gpu(name.decode("utf-8", "replace"), fields) for name, fields in found.items())


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


def _values(lines: bytes, name: bytes) -> list[float]:
    return [value for _, value in _samples(lines, name, scattered=False)]


def _samples(lines: bytes, name: bytes, *, scattered: bool) -> list[tuple[bytes, float]]:
    """Labels and values of a name, whose lines stand together or, with `scattered`, anywhere."""
    found = []
    line = b"\n" + name
    at = lines.find(line)
    is_there = False
    while at >= 0:
        behind = at + len(line)
        match = _BEHIND_NAME.match(lines, behind)
        if match is not None:  # else it is the beginning of a longer name
            is_there = True
            value = _value(match["value"])
            if value is not None:
                found.append((match["labels"] or b"", value))
        at = lines.find(b"\n", behind)
        if not lines.startswith(line, at):
            at = lines.find(line, behind) if scattered or not is_there else -1
    return found


def _value(text: bytes) -> float | None:
    """A gauge that is not a number, infinite or below zero says nothing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < inf else None
